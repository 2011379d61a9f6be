// Java's own client, which offers HTTP/2. It reads no variables: its proxy and its trust store are properties.
// usage: java Fetch METHOD URL [BODY [NAME VALUE]...]; prints the status and the version, then the body.
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;

public class Fetch {
	public static void main(String[] args) throws Exception {
		boolean hasBody = args.length > 2 && !args[2].isEmpty();
		HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(args[1]))
			.method(args[0], hasBody ? BodyPublishers.ofString(args[2]) : BodyPublishers.noBody());
		for (int i = 3; i + 1 < args.length; i += 2)
			request.header(args[i], args[i + 1]);
		HttpClient client = HttpClient.newBuilder().proxy(ProxySelector.getDefault()).build();
		HttpResponse<String> response = client.send(request.build(), BodyHandlers.ofString());
		System.out.println(response.statusCode() + (response.version() == HttpClient.Version.HTTP_2 ? " h2" : " http/1.1"));
		System.out.println(response.body());
	}
}
