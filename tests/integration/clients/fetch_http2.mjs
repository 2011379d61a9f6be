// node's own HTTP/2 through the proxy: a CONNECT, TLS with ALPN h2 inside it, one request.
// usage: node fetch_http2.mjs METHOD URL [BODY [NAME VALUE]...]; prints the status and the version, then the body.
import http from 'node:http';
import http2 from 'node:http2';
import tls from 'node:tls';

const [method, url, body, ...words] = process.argv.slice(2);
const { hostname, pathname, search, origin } = new URL(url);
const proxy = new URL(process.env.https_proxy);
const headers = { ':method': method, ':path': pathname + search };
for (let i = 0; i < words.length; i += 2)
	headers[words[i]] = words[i + 1];

function ask(socket) {
	const session = http2.connect(origin, { createConnection: () => socket });
	const stream = session.request(headers, { endStream: !body });
	const pieces = [];
	let status;
	stream.on('response', (fields) => { status = fields[':status']; });
	stream.on('data', (piece) => pieces.push(piece));
	stream.on('end', () => {
		console.log(`${status} ${socket.alpnProtocol}`);
		console.log(Buffer.concat(pieces).toString());
		session.close();
	});
	if (body)
		stream.end(body);
}

const path = `${hostname}:443`;
http.request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path, headers: { host: path } })
	.on('connect', (answer, socket) => {
		if (answer.statusCode !== 200)
			throw new Error(`CONNECT: ${answer.statusCode} ${answer.headers['x-cage-reason']}`);
		const inner = tls.connect({ socket, servername: hostname, ALPNProtocols: ['h2'] }, () => ask(inner));
	})
	.end();
