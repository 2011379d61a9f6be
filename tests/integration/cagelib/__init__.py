"""What the integration tests and the demo share: certificates, origins, the proxy as a process, its log."""
