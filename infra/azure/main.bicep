// The network, identities, vault, registry and log of cage on Azure Container Instances. main.json says the same and is
// what the tests look at: change both (tests/contract/test_bicep.py compares them, property by property).
//
// Agents are container groups in the subnet `locked`, where the fabric lets them reach one address, on two ports. What
// is there is the gateway, a group with cage-proxy, cage-dns and cage-ship in the subnet `egress`, behind a load balancer, since the
// address of a group changes when it is moved. README.md says what each rule is for, and what has never been tried.
targetScope = 'resourceGroup'

@description('Where everything is made. Container Instances, their virtual network and the workspace have to be available there.')
param location string = resourceGroup().location

@description('Beginning of every name: lower-case letters and digits, as a registry wants them, a letter first, as a vault does.')
@minLength(2)
@maxLength(8)
param prefix string = 'cage'

@description('Address space of the virtual network. Peer it with nothing that agents must not reach.')
param addressSpace string = '10.60.0.0/16'

@description('Subnet of the load balancer alone.')
param frontendPrefix string = '10.60.0.0/27'

@description('Subnet of the agents. Container Instances want /24 or larger.')
param lockedPrefix string = '10.60.1.0/24'

@description('Subnet of the gateway. Container Instances want /24 or larger.')
param egressPrefix string = '10.60.2.0/24'

@description('Address of the load balancer, in frontendPrefix: the proxy (8080) and name server (53) of every agent.')
@minLength(7)
@maxLength(15)
param gatewayAddress string = '10.60.0.4'

@description('From where the orchestrator tells the gateway of sandboxes (8443). Addresses of this network or of one that is peered with it; no agent\'s.')
param orchestratorPrefix string = '10.60.3.0/27'

@description('Where cage-dns listens in the gateway group. The load balancer leads port 53 there.')
@minValue(53)
@maxValue(19999)
param dnsPort int = 5300

@description('TCP ports of the Internet that the gateway may reach. The policy decides about hosts; this is the wall behind it.')
param egressPorts array = [
  '80'
  '443'
]

@description('Whether the gateway group is made too. Its images have to be in the registry by then, so the first deployment leaves it out.')
param deployGateway bool = false

@description('Image of cage-proxy in the registry, by digest: cage/proxy@sha256:...')
param proxyImage string = ''

@description('Image of cage-dns in the registry, by digest: cage/dns@sha256:...')
param dnsImage string = ''

@description('Image of cage-ship in the registry, by digest: cage/ship@sha256:...')
param shipImage string = ''

@description('The policy, as YAML text. It names secrets and never holds one.')
param policy string = ''

@description('Certificate of the gateway\'s intake, as PEM, for the address gatewayAddress, with those above it.')
param intakeCertificate string = ''

@description('Key of that certificate, as PEM.')
@secure()
param intakeKey string = ''

@description('What the orchestrator shows at the intake: 32 to 511 characters.')
@maxLength(511)
@secure()
param intakeToken string = ''

@description('Kind of registry. Premium is needed for private endpoints.')
@allowed([
  'Basic'
  'Standard'
  'Premium'
])
param registrySku string = 'Standard'

@description('Enabled: the vault can be reached by the subnet egress and operatorAddresses, and by nobody else. Disabled: by private endpoints alone, which you make.')
@allowed([
  'Enabled'
  'Disabled'
])
param vaultPublicNetworkAccess string = 'Enabled'

@description('From where secrets are written into the vault: a list of {"value": "203.0.113.7/32"}.')
param operatorAddresses array = []

@description('Days for which the decision log is kept.')
@minValue(30)
@maxValue(730)
param logRetentionDays int = 90

@description('Resource ids of the action groups that alerts go to. Without one they are shown in the portal alone.')
param actionGroupIds array = []

@description('More requests than this that are blocked for a secret, of one sandbox in 15 minutes, raise an alert.')
@minValue(0)
param secretBlockThreshold int = 10

@description('Object id of the service principal Standby Pool Resource Provider in your tenant, which standby pools work as. Empty: it is given no roles, and pools can\'t be had.')
param standbyPoolPrincipalId string = ''

var suffix = uniqueString(resourceGroup().id)

// One line of the log, key by key (docs/log.md). ts stays text: the hash of a line is over its bytes.
var logColumns = [
  { name: 'schema', type: 'string' }
  { name: 'ts', type: 'string' }
  { name: 'seq', type: 'long' }
  { name: 'event', type: 'string' }
  { name: 'sandbox', type: 'string' }
  { name: 'policy', type: 'string' }
  { name: 'policy_sha', type: 'string' }
  { name: 'gen', type: 'long' }
  { name: 'conn', type: 'string' }
  { name: 'txn', type: 'string' }
  { name: 'decision', type: 'string' }
  { name: 'enforced', type: 'boolean' }
  { name: 'reason', type: 'string' }
  { name: 'stage', type: 'string' }
  { name: 'rule', type: 'string' }
  { name: 'method', type: 'string' }
  { name: 'scheme', type: 'string' }
  { name: 'host', type: 'string' }
  { name: 'port', type: 'int' }
  { name: 'path', type: 'string' }
  { name: 'alpn', type: 'string' }
  { name: 'address', type: 'string' }
  { name: 'status', type: 'int' }
  { name: 'bytes_out', type: 'long' }
  { name: 'bytes_in', type: 'long' }
  { name: 'inspected_out', type: 'long' }
  { name: 'inspected_in', type: 'long' }
  { name: 'ms', type: 'dynamic' }
  { name: 'findings', type: 'dynamic' }
  { name: 'injected', type: 'dynamic' }
  { name: 'redacted', type: 'dynamic' }
  { name: 'prev', type: 'string' }
  { name: 'hash', type: 'string' }
]

// ---- network

resource lockedRules 'Microsoft.Network/networkSecurityGroups@2025-05-01' = {
  name: '${prefix}-locked'
  location: location
  properties: {
    securityRules: [
      {
        name: 'out-proxy'
        properties: {
          description: 'The way out: cage-proxy.'
          direction: 'Outbound'
          priority: 100
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: lockedPrefix
          sourcePortRange: '*'
          destinationAddressPrefix: '${gatewayAddress}/32'
          destinationPortRange: '8080'
        }
      }
      {
        name: 'out-dns-udp'
        properties: {
          description: 'Names: cage-dns.'
          direction: 'Outbound'
          priority: 110
          access: 'Allow'
          protocol: 'Udp'
          sourceAddressPrefix: lockedPrefix
          sourcePortRange: '*'
          destinationAddressPrefix: '${gatewayAddress}/32'
          destinationPortRange: '53'
        }
      }
      {
        name: 'out-dns-tcp'
        properties: {
          description: 'Names over TCP: cage-dns.'
          direction: 'Outbound'
          priority: 120
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: lockedPrefix
          sourcePortRange: '*'
          destinationAddressPrefix: '${gatewayAddress}/32'
          destinationPortRange: '53'
        }
      }
      // Rules touch 168.63.129.16 and 169.254.169.254 only where they name these tags: not even the last one would.
      {
        name: 'no-platform-dns'
        properties: {
          description: '168.63.129.16 is in every resolv.conf of a group, and a resolver is a tunnel.'
          direction: 'Outbound'
          priority: 200
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: 'AzurePlatformDNS'
          destinationPortRange: '*'
        }
      }
      {
        name: 'no-platform-metadata'
        properties: {
          description: '169.254.169.254 gives tokens of the identities of a group to any container of it.'
          direction: 'Outbound'
          priority: 210
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: 'AzurePlatformIMDS'
          destinationPortRange: '*'
        }
      }
      {
        name: 'no-platform-licences'
        properties: {
          description: 'Activation of Windows: nobody here needs it.'
          direction: 'Outbound'
          priority: 220
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: 'AzurePlatformLKM'
          destinationPortRange: '*'
        }
      }
      {
        name: 'no-network'
        properties: {
          description: 'In place of the default rule 65000, which allows the whole virtual network and what is peered with it.'
          direction: 'Outbound'
          priority: 300
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: 'VirtualNetwork'
          destinationPortRange: '*'
        }
      }
      {
        name: 'no-internet'
        properties: {
          description: 'In place of the default rule 65001. The route table says the same.'
          direction: 'Outbound'
          priority: 310
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: 'Internet'
          destinationPortRange: '*'
        }
      }
      {
        name: 'nothing-else-out'
        properties: {
          description: 'What has no tag.'
          direction: 'Outbound'
          priority: 4096
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: '*'
        }
      }
      // From where Container Instances come is not documented; no agent can be there, since 19390 is no port of the gateway.
      {
        name: 'in-container-instances'
        properties: {
          description: 'Container Instances steer their groups over this port: without it deployments hang.'
          direction: 'Inbound'
          priority: 100
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: lockedPrefix
          destinationPortRange: '19390'
        }
      }
      {
        name: 'nothing-else-in'
        properties: {
          description: 'No agent is reached by another one, nor by the gateway. In place of the default rules 65000 and 65001.'
          direction: 'Inbound'
          priority: 4096
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: '*'
        }
      }
    ]
  }
}

resource egressRules 'Microsoft.Network/networkSecurityGroups@2025-05-01' = {
  name: '${prefix}-egress'
  location: location
  properties: {
    securityRules: [
      {
        name: 'out-web'
        properties: {
          description: 'What the proxy lets out.'
          direction: 'Outbound'
          priority: 100
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: egressPrefix
          sourcePortRange: '*'
          destinationAddressPrefix: 'Internet'
          destinationPortRanges: egressPorts
        }
      }
      // AzurePlatformDNS and AzurePlatformIMDS are not denied here. The gateway needs a resolver, and a token of its
      // identity for the vault comes from 169.254.169.254 alone. What agents ask for reaches neither: cage-proxy never
      // connects to a metadata address, whatever the policy says, and cage-dns asks for allowed names only.
      {
        name: 'no-platform-licences'
        properties: {
          description: 'Activation of Windows: nobody here needs it.'
          direction: 'Outbound'
          priority: 220
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: 'AzurePlatformLKM'
          destinationPortRange: '*'
        }
      }
      {
        name: 'no-network'
        properties: {
          description: 'In place of the default rule 65000: the gateway is no way from one agent to another, nor to what is peered.'
          direction: 'Outbound'
          priority: 300
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: 'VirtualNetwork'
          destinationPortRange: '*'
        }
      }
      {
        name: 'nothing-else-out'
        properties: {
          description: 'In place of the default rule 65001: other ports, and all of UDP.'
          direction: 'Outbound'
          priority: 4096
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: '*'
        }
      }
      {
        name: 'in-container-instances'
        properties: {
          description: 'Container Instances steer their groups over this port: without it deployments hang.'
          direction: 'Inbound'
          priority: 100
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: egressPrefix
          destinationPortRange: '19390'
        }
      }
      // Behind a load balancer packets have the address of the agent and the port of the group.
      {
        name: 'in-proxy'
        properties: {
          description: 'Agents to cage-proxy.'
          direction: 'Inbound'
          priority: 110
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: lockedPrefix
          sourcePortRange: '*'
          destinationAddressPrefix: egressPrefix
          destinationPortRange: '8080'
        }
      }
      {
        name: 'in-dns-udp'
        properties: {
          description: 'Agents to cage-dns.'
          direction: 'Inbound'
          priority: 120
          access: 'Allow'
          protocol: 'Udp'
          sourceAddressPrefix: lockedPrefix
          sourcePortRange: '*'
          destinationAddressPrefix: egressPrefix
          destinationPortRange: string(dnsPort)
        }
      }
      {
        name: 'in-dns-tcp'
        properties: {
          description: 'Agents to cage-dns over TCP.'
          direction: 'Inbound'
          priority: 130
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: lockedPrefix
          sourcePortRange: '*'
          destinationAddressPrefix: egressPrefix
          destinationPortRange: string(dnsPort)
        }
      }
      {
        name: 'in-intake'
        properties: {
          description: 'The orchestrator to cage-gateway.'
          direction: 'Inbound'
          priority: 135
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: orchestratorPrefix
          sourcePortRange: '*'
          destinationAddressPrefix: egressPrefix
          destinationPortRange: '8443'
        }
      }
      {
        name: 'in-probes'
        properties: {
          description: 'The load balancer looks whether the gateway is there.'
          direction: 'Inbound'
          priority: 140
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: 'AzureLoadBalancer'
          sourcePortRange: '*'
          destinationAddressPrefix: egressPrefix
          destinationPortRanges: [
            '8080'
            string(dnsPort)
          ]
        }
      }
      {
        name: 'nothing-else-in'
        properties: {
          description: 'In place of the default rules 65000 and 65001.'
          direction: 'Inbound'
          priority: 4096
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: '*'
        }
      }
    ]
  }
}

// The front of a load balancer has no network card that rules could be about: these are for what somebody puts there.
resource frontendRules 'Microsoft.Network/networkSecurityGroups@2025-05-01' = {
  name: '${prefix}-frontend'
  location: location
  properties: {
    securityRules: [
      {
        name: 'nothing-out'
        properties: {
          description: 'Nothing but the load balancer belongs here.'
          direction: 'Outbound'
          priority: 4096
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: '*'
        }
      }
      {
        name: 'nothing-in'
        properties: {
          description: 'Nothing but the load balancer belongs here.'
          direction: 'Inbound'
          priority: 4096
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: '*'
        }
      }
    ]
  }
}

resource lockedRoutes 'Microsoft.Network/routeTables@2025-05-01' = {
  name: '${prefix}-locked'
  location: location
  properties: {
    disableBgpRoutePropagation: true
    routes: [
      {
        name: 'nowhere'
        properties: {
          addressPrefix: '0.0.0.0/0'
          nextHopType: 'None'
        }
      }
    ]
  }
}

resource natAddress 'Microsoft.Network/publicIPAddresses@2025-05-01' = {
  name: '${prefix}-nat'
  location: location
  sku: {
    name: 'Standard'
  }
  properties: {
    publicIPAddressVersion: 'IPv4'
    publicIPAllocationMethod: 'Static'
  }
}

resource nat 'Microsoft.Network/natGateways@2025-05-01' = {
  name: '${prefix}-nat'
  location: location
  sku: {
    name: 'Standard'
  }
  properties: {
    idleTimeoutInMinutes: 10
    publicIpAddresses: [
      {
        id: natAddress.id
      }
    ]
  }
}

resource network 'Microsoft.Network/virtualNetworks@2025-05-01' = {
  name: '${prefix}-network'
  location: location
  properties: {
    addressSpace: {
      addressPrefixes: [
        addressSpace
      ]
    }
    subnets: [
      {
        name: 'frontend'
        properties: {
          addressPrefix: frontendPrefix
          defaultOutboundAccess: false
          networkSecurityGroup: {
            id: frontendRules.id
          }
        }
      }
      {
        name: 'locked'
        properties: {
          addressPrefix: lockedPrefix
          defaultOutboundAccess: false
          networkSecurityGroup: {
            id: lockedRules.id
          }
          routeTable: {
            id: lockedRoutes.id
          }
          delegations: [
            {
              name: 'container-instances'
              properties: {
                serviceName: 'Microsoft.ContainerInstance/containerGroups'
              }
            }
          ]
        }
      }
      {
        name: 'egress'
        properties: {
          addressPrefix: egressPrefix
          defaultOutboundAccess: false
          networkSecurityGroup: {
            id: egressRules.id
          }
          natGateway: {
            id: nat.id
          }
          serviceEndpoints: [
            {
              service: 'Microsoft.KeyVault'
            }
          ]
          delegations: [
            {
              name: 'container-instances'
              properties: {
                serviceName: 'Microsoft.ContainerInstance/containerGroups'
              }
            }
          ]
        }
      }
    ]
  }
}

resource frontend 'Microsoft.Network/virtualNetworks/subnets@2025-05-01' existing = {
  parent: network
  name: 'frontend'
}

resource locked 'Microsoft.Network/virtualNetworks/subnets@2025-05-01' existing = {
  parent: network
  name: 'locked'
}

resource egress 'Microsoft.Network/virtualNetworks/subnets@2025-05-01' existing = {
  parent: network
  name: 'egress'
}

// Groups are in a pool by address, with their subnet: so Container Instances want it.
resource balancer 'Microsoft.Network/loadBalancers@2025-05-01' = {
  name: '${prefix}-gateway'
  location: location
  sku: {
    name: 'Standard'
  }
  properties: {
    frontendIPConfigurations: [
      {
        name: 'gateway'
        properties: {
          privateIPAddress: gatewayAddress
          privateIPAllocationMethod: 'Static'
          subnet: {
            id: frontend.id
          }
        }
      }
    ]
    backendAddressPools: [
      {
        name: 'gateway'
        properties: {
          loadBalancerBackendAddresses: deployGateway ? [
            {
              name: 'gateway'
              properties: {
                ipAddress: gateway!.properties.ipAddress.ip
                subnet: {
                  id: egress.id
                }
              }
            }
          ] : []
        }
      }
    ]
    probes: [
      {
        name: 'proxy'
        properties: {
          protocol: 'Tcp'
          port: 8080
          intervalInSeconds: 5
          probeThreshold: 2
        }
      }
      {
        name: 'dns'
        properties: {
          protocol: 'Tcp'
          port: dnsPort
          intervalInSeconds: 5
          probeThreshold: 2
        }
      }
    ]
    loadBalancingRules: [
      {
        name: 'proxy'
        properties: {
          protocol: 'Tcp'
          frontendPort: 8080
          backendPort: 8080
          idleTimeoutInMinutes: 15
          enableTcpReset: true
          frontendIPConfiguration: {
            id: resourceId('Microsoft.Network/loadBalancers/frontendIPConfigurations', '${prefix}-gateway', 'gateway')
          }
          backendAddressPool: {
            id: resourceId('Microsoft.Network/loadBalancers/backendAddressPools', '${prefix}-gateway', 'gateway')
          }
          probe: {
            id: resourceId('Microsoft.Network/loadBalancers/probes', '${prefix}-gateway', 'proxy')
          }
        }
      }
      {
        name: 'intake'
        properties: {
          protocol: 'Tcp'
          frontendPort: 8443
          backendPort: 8443
          enableTcpReset: true
          frontendIPConfiguration: {
            id: resourceId('Microsoft.Network/loadBalancers/frontendIPConfigurations', '${prefix}-gateway', 'gateway')
          }
          backendAddressPool: {
            id: resourceId('Microsoft.Network/loadBalancers/backendAddressPools', '${prefix}-gateway', 'gateway')
          }
          probe: {
            id: resourceId('Microsoft.Network/loadBalancers/probes', '${prefix}-gateway', 'proxy')
          }
        }
      }
      {
        name: 'dns-udp'
        properties: {
          protocol: 'Udp'
          frontendPort: 53
          backendPort: dnsPort
          frontendIPConfiguration: {
            id: resourceId('Microsoft.Network/loadBalancers/frontendIPConfigurations', '${prefix}-gateway', 'gateway')
          }
          backendAddressPool: {
            id: resourceId('Microsoft.Network/loadBalancers/backendAddressPools', '${prefix}-gateway', 'gateway')
          }
          probe: {
            id: resourceId('Microsoft.Network/loadBalancers/probes', '${prefix}-gateway', 'dns')
          }
        }
      }
      {
        name: 'dns-tcp'
        properties: {
          protocol: 'Tcp'
          frontendPort: 53
          backendPort: dnsPort
          enableTcpReset: true
          frontendIPConfiguration: {
            id: resourceId('Microsoft.Network/loadBalancers/frontendIPConfigurations', '${prefix}-gateway', 'gateway')
          }
          backendAddressPool: {
            id: resourceId('Microsoft.Network/loadBalancers/backendAddressPools', '${prefix}-gateway', 'gateway')
          }
          probe: {
            id: resourceId('Microsoft.Network/loadBalancers/probes', '${prefix}-gateway', 'dns')
          }
        }
      }
    ]
  }
}

// ---- identities, each with one role at one thing

resource pullIdentity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: '${prefix}-pull'
  location: location
}

resource proxyIdentity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: '${prefix}-proxy'
  location: location
}

resource shipIdentity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: '${prefix}-ship'
  location: location
}

resource registry 'Microsoft.ContainerRegistry/registries@2025-04-01' = {
  name: '${prefix}${suffix}'
  location: location
  sku: {
    name: registrySku
  }
  properties: {
    adminUserEnabled: false
    anonymousPullEnabled: false
  }
}

// AcrPull
resource pullRole 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(registry.id, pullIdentity.id, '7f951dda-4ed3-4680-a7ca-43fe172d538d')
  scope: registry
  properties: {
    principalId: pullIdentity.properties.principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '7f951dda-4ed3-4680-a7ca-43fe172d538d')
  }
}

resource vault 'Microsoft.KeyVault/vaults@2024-11-01' = {
  name: '${prefix}-${suffix}'
  location: location
  tags: {
    'cage.owner': 'cage-azure'
  }
  properties: {
    tenantId: subscription().tenantId
    sku: {
      family: 'A'
      name: 'standard'
    }
    enableRbacAuthorization: true
    enableSoftDelete: true
    softDeleteRetentionInDays: 90
    enablePurgeProtection: true
    publicNetworkAccess: vaultPublicNetworkAccess
    networkAcls: {
      bypass: 'None'
      defaultAction: 'Deny'
      ipRules: operatorAddresses
      virtualNetworkRules: [
        {
          id: egress.id
        }
      ]
    }
  }
}

// Key Vault Secrets User
resource proxyRole 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(vault.id, proxyIdentity.id, '4633458b-17de-408a-b874-0445c86b69e6')
  scope: vault
  properties: {
    principalId: proxyIdentity.properties.principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4633458b-17de-408a-b874-0445c86b69e6')
  }
}

// ---- the decision log

resource workspace 'Microsoft.OperationalInsights/workspaces@2025-02-01' = {
  name: '${prefix}-log'
  location: location
  properties: {
    sku: {
      name: 'PerGB2018'
    }
    retentionInDays: logRetentionDays
    features: {
      disableLocalAuth: true
      enableLogAccessUsingOnlyResourcePermissions: true
    }
  }
}

resource logTable 'Microsoft.OperationalInsights/workspaces/tables@2025-02-01' = {
  parent: workspace
  name: 'CageLog_CL'
  properties: {
    plan: 'Analytics'
    retentionInDays: logRetentionDays
    totalRetentionInDays: logRetentionDays
    schema: {
      name: 'CageLog_CL'
      columns: concat([
        { name: 'TimeGenerated', type: 'dateTime' }
      ], logColumns)
    }
  }
}

resource logEndpoint 'Microsoft.Insights/dataCollectionEndpoints@2023-03-11' = {
  name: '${prefix}-log'
  location: location
  properties: {
    networkAcls: {
      publicNetworkAccess: 'Enabled'
    }
  }
}

resource logRule 'Microsoft.Insights/dataCollectionRules@2023-03-11' = {
  name: '${prefix}-log'
  location: location
  properties: {
    dataCollectionEndpointId: logEndpoint.id
    streamDeclarations: {
      'Custom-CageLog_CL': {
        columns: logColumns
      }
    }
    destinations: {
      logAnalytics: [
        {
          name: 'workspace'
          workspaceResourceId: workspace.id
        }
      ]
    }
    dataFlows: [
      {
        streams: [
          'Custom-CageLog_CL'
        ]
        destinations: [
          'workspace'
        ]
        transformKql: 'source | extend TimeGenerated = todatetime(ts)'
        outputStream: 'Custom-CageLog_CL'
      }
    ]
  }
  dependsOn: [
    logTable
  ]
}

// Monitoring Metrics Publisher: the role that the Logs Ingestion API wants, whatever its name.
resource shipRole 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(logRule.id, shipIdentity.id, '3913510d-42f4-4e42-8a64-420c390055eb')
  scope: logRule
  properties: {
    principalId: shipIdentity.properties.principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '3913510d-42f4-4e42-8a64-420c390055eb')
  }
}

// ---- standby pools. Their provider makes groups by itself, and wants these roles for it (docs/azure.md).

// Azure Container Instances Contributor Role
resource standbyInstances 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(standbyPoolPrincipalId)) {
  name: guid(resourceGroup().id, standbyPoolPrincipalId, '5d977122-f97e-4b4d-a52f-6b43003ddb4d')
  properties: {
    principalId: standbyPoolPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '5d977122-f97e-4b4d-a52f-6b43003ddb4d')
  }
}

// Standby Container Group Pool Contributor
resource standbyPools 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(standbyPoolPrincipalId)) {
  name: guid(resourceGroup().id, standbyPoolPrincipalId, '39fcb0de-8844-4706-b050-c28ddbe3ff83')
  properties: {
    principalId: standbyPoolPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '39fcb0de-8844-4706-b050-c28ddbe3ff83')
  }
}

// Managed Identity Contributor
resource standbyIdentities 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(standbyPoolPrincipalId)) {
  name: guid(resourceGroup().id, standbyPoolPrincipalId, 'e40ec5ca-96e0-45a2-b4ff-59039f2c2b59')
  properties: {
    principalId: standbyPoolPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'e40ec5ca-96e0-45a2-b4ff-59039f2c2b59')
  }
}

// Managed Identity Operator
resource standbyIdentityUse 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(standbyPoolPrincipalId)) {
  name: guid(resourceGroup().id, standbyPoolPrincipalId, 'f1a07417-d97a-45cb-824c-7a7467783830')
  properties: {
    principalId: standbyPoolPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'f1a07417-d97a-45cb-824c-7a7467783830')
  }
}

// Network Contributor
resource standbyNetwork 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(standbyPoolPrincipalId)) {
  name: guid(network.id, standbyPoolPrincipalId, '4d97b98b-1d4f-4787-a291-c67834d212e7')
  scope: network
  properties: {
    principalId: standbyPoolPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4d97b98b-1d4f-4787-a291-c67834d212e7')
  }
}

// AcrPull: the registry knows no repository permissions, for which it would be Container Registry Repository Reader.
resource standbyImages 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(standbyPoolPrincipalId)) {
  name: guid(registry.id, standbyPoolPrincipalId, '7f951dda-4ed3-4680-a7ca-43fe172d538d')
  scope: registry
  properties: {
    principalId: standbyPoolPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '7f951dda-4ed3-4680-a7ca-43fe172d538d')
  }
}

// ---- alerts. A new table can't be asked for a while: their queries are not looked at when they are made.

resource logAlert 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: '${prefix}-log-unavailable'
  location: location
  kind: 'LogAlert'
  properties: {
    displayName: 'cage: the decision log can not be written'
    description: 'While it can not, all traffic is refused. Make room where it is written.'
    severity: 1
    enabled: true
    skipQueryValidation: true
    scopes: [
      workspace.id
    ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT5M'
    criteria: {
      allOf: [
        {
          query: 'CageLog_CL | where reason == "log.unavailable" or (event == "error" and stage == "log")'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 0
          failingPeriods: {
            numberOfEvaluationPeriods: 1
            minFailingPeriodsToAlert: 1
          }
        }
      ]
    }
    autoMitigate: true
    actions: {
      actionGroups: actionGroupIds
    }
  }
  dependsOn: [
    logTable
  ]
}

// A line whose predecessor is not there. Lines get a quarter of an hour to arrive; predecessors are looked for in two days.
resource chainAlert 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: '${prefix}-chain-gap'
  location: location
  kind: 'LogAlert'
  properties: {
    displayName: 'cage: a line of the decision log is missing'
    description: 'The line before this one has not arrived: it was lost on the way, or somebody removed or changed it. Compare with the file.'
    severity: 1
    enabled: true
    skipQueryValidation: true
    scopes: [
      workspace.id
    ]
    evaluationFrequency: 'PT15M'
    windowSize: 'PT15M'
    overrideQueryTimeRange: 'P2D'
    criteria: {
      allOf: [
        {
          query: 'CageLog_CL | where TimeGenerated between (ago(30m) .. ago(15m)) and prev != "0000000000000000000000000000000000000000000000000000000000000000" | join kind=leftanti (CageLog_CL | project hash) on $left.prev == $right.hash'
          timeAggregation: 'Count'
          operator: 'GreaterThan'
          threshold: 0
          failingPeriods: {
            numberOfEvaluationPeriods: 1
            minFailingPeriodsToAlert: 1
          }
        }
      ]
    }
    autoMitigate: false
    actions: {
      actionGroups: actionGroupIds
    }
  }
  dependsOn: [
    logTable
  ]
}

resource secretAlert 'Microsoft.Insights/scheduledQueryRules@2023-12-01' = {
  name: '${prefix}-secret-blocks'
  location: location
  kind: 'LogAlert'
  properties: {
    displayName: 'cage: a sandbox keeps trying to send secrets'
    description: 'Look at what the agent does; rotate what it had (secret.leaked), find out where it got it.'
    severity: 2
    enabled: true
    skipQueryValidation: true
    scopes: [
      workspace.id
    ]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    criteria: {
      allOf: [
        {
          query: 'CageLog_CL | where decision == "block" and (reason startswith "secret." or reason == "canary.detected")'
          timeAggregation: 'Count'
          dimensions: [
            {
              name: 'sandbox'
              operator: 'Include'
              values: [
                '*'
              ]
            }
          ]
          operator: 'GreaterThan'
          threshold: secretBlockThreshold
          failingPeriods: {
            numberOfEvaluationPeriods: 1
            minFailingPeriodsToAlert: 1
          }
        }
      ]
    }
    autoMitigate: true
    actions: {
      actionGroups: actionGroupIds
    }
  }
  dependsOn: [
    logTable
  ]
}

// ---- the gateway

resource gateway 'Microsoft.ContainerInstance/containerGroups@2025-09-01' = if (deployGateway) {
  name: '${prefix}-gateway'
  location: location
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${pullIdentity.id}': {}
      '${proxyIdentity.id}': {}
      '${shipIdentity.id}': {}
    }
  }
  properties: {
    sku: 'Standard'
    osType: 'Linux'
    restartPolicy: 'Always'
    subnetIds: [
      {
        id: egress.id
      }
    ]
    ipAddress: {
      type: 'Private'
      ports: [
        { protocol: 'TCP', port: 8080 }
        { protocol: 'TCP', port: 8443 }
        { protocol: 'TCP', port: dnsPort }
        { protocol: 'UDP', port: dnsPort }
      ]
    }
    imageRegistryCredentials: [
      {
        server: registry.properties.loginServer
        identity: pullIdentity.id
      }
    ]
    volumes: [
      {
        name: 'policy'
        secret: {
          'policy.yaml': base64(policy)
        }
      }
      {
        name: 'intake'
        secret: {
          'cert.pem': base64(intakeCertificate)
          'key.pem': base64(intakeKey)
          token: base64(intakeToken)
        }
      }
      {
        name: 'proxy-state'
        emptyDir: {}
      }
      {
        name: 'log'
        emptyDir: {}
      }
      {
        name: 'dns-state'
        emptyDir: {}
      }
      {
        name: 'dns-log'
        emptyDir: {}
      }
      {
        name: 'ship-state'
        emptyDir: {}
      }
    ]
    containers: [
      {
        name: 'proxy'
        properties: {
          image: '${registry.properties.loginServer}/${proxyImage}'
          command: [
            '/usr/bin/cage-gateway'
            '--intake'
            '0.0.0.0:8443'
            '--intake-cert'
            '/etc/cage-intake/cert.pem'
            '--intake-key'
            '/etc/cage-intake/key.pem'
            '--intake-token'
            '/etc/cage-intake/token'
            '--state'
            '/var/lib/cage/gateway'
            '--log-dir'
            '/var/log/cage'
            '--policy'
            '/etc/cage/policy.yaml'
            '--ca-dir'
            '/var/lib/cage'
            '--'
            '--listen'
            '0.0.0.0:8080'
            '--kit'
            '/var/lib/cage'
            '--never'
            '${gatewayAddress}:8443'
            '--never'
            '${gatewayAddress}:8080'
          ]
          ports: [
            { protocol: 'TCP', port: 8080 }
            { protocol: 'TCP', port: 8443 }
          ]
          resources: {
            requests: {
              cpu: 1
              memoryInGB: 1
            }
          }
          volumeMounts: [
            { name: 'policy', mountPath: '/etc/cage', readOnly: true }
            { name: 'intake', mountPath: '/etc/cage-intake', readOnly: true }
            { name: 'proxy-state', mountPath: '/var/lib/cage' }
            { name: 'log', mountPath: '/var/log/cage' }
          ]
        }
      }
      {
        name: 'dns'
        properties: {
          image: '${registry.properties.loginServer}/${dnsImage}'
          command: [
            '/usr/bin/cage-dns'
            '--policy'
            '/etc/cage/policy.yaml'
            '--listen'
            '0.0.0.0:${dnsPort}'
            '--log'
            '/var/log/cage-dns/dns.jsonl'
            '--log-turn'
            '268435456'
            '--sandbox'
            'gateway-dns'
          ]
          ports: [
            { protocol: 'TCP', port: dnsPort }
            { protocol: 'UDP', port: dnsPort }
          ]
          resources: {
            requests: {
              cpu: 1
              memoryInGB: 1
            }
          }
          volumeMounts: [
            { name: 'policy', mountPath: '/etc/cage', readOnly: true }
            { name: 'dns-state', mountPath: '/var/lib/cage' }
            { name: 'dns-log', mountPath: '/var/log/cage-dns' }
          ]
        }
      }
      {
        // Of the proxy and of dns it sees the logs alone: neither the CA nor the intake's key. Each has a volume of its own, so that neither can change what the other has written.
        name: 'ship'
        properties: {
          image: '${registry.properties.loginServer}/${shipImage}'
          command: [
            '/usr/bin/cage-ship'
            '--logs'
            '/var/log/cage'
            '--logs'
            '/var/log/cage-dns'
            '--endpoint'
            logEndpoint.properties.logsIngestion.endpoint
            '--rule'
            logRule.properties.immutableId
            '--stream'
            'Custom-CageLog_CL'
            '--state'
            '/var/lib/cage/ship'
            '--credentials'
            'identity'
          ]
          environmentVariables: [
            { name: 'AZURE_CLIENT_ID', secureValue: shipIdentity.properties.clientId }
          ]
          resources: {
            requests: {
              cpu: json('0.5')
              memoryInGB: json('0.5')
            }
          }
          volumeMounts: [
            { name: 'log', mountPath: '/var/log/cage', readOnly: true }
            { name: 'dns-log', mountPath: '/var/log/cage-dns', readOnly: true }
            { name: 'ship-state', mountPath: '/var/lib/cage' }
          ]
        }
      }
    ]
  }
  dependsOn: [
    pullRole
    proxyRole
    shipRole
  ]
}

@description('HTTP_PROXY of agents.')
output proxyUrl string = 'http://${gatewayAddress}:8080'

@description('Where the orchestrator tells the gateway of sandboxes.')
output intakeUrl string = 'https://${gatewayAddress}:8443'

@description('Name server of agents.')
output nameServer string = gatewayAddress

@description('Subnet of agent groups.')
output lockedSubnetId string = locked.id

@description('Subnet of the gateway group.')
output egressSubnetId string = egress.id

@description('The address that servers see.')
output outboundAddress string = natAddress.properties.ipAddress

@description('Where images are pushed to.')
output registryServer string = registry.properties.loginServer

@description('Identity that pulls images, and can do nothing else.')
output pullIdentityId string = pullIdentity.id

@description('Identity that reads secrets.')
output proxyIdentityId string = proxyIdentity.id

@description('Client id of the identity that reads secrets.')
output proxyClientId string = proxyIdentity.properties.clientId

@description('Client id of the identity that ships the decision log.')
output shipClientId string = shipIdentity.properties.clientId

@description('The vault.')
output vaultUri string = vault.properties.vaultUri

@description('Where the decision log is posted to: ENDPOINT/dataCollectionRules/RULE/streams/STREAM?api-version=2023-01-01.')
output logIngestionEndpoint string = logEndpoint.properties.logsIngestion.endpoint

@description('RULE of that.')
output logRuleId string = logRule.properties.immutableId

@description('STREAM of that.')
output logStream string = 'Custom-CageLog_CL'
