// node's own fetch through the proxy. Neither node 18 nor node 20 looks at proxy variables, so fetch gets a dispatcher of
// its own kind (the class of its global one) whose connections are CONNECT tunnels with TLS inside.
// usage: node fetch.mjs METHOD URL [BODY [NAME VALUE]...]; prints the status and the body. An empty BODY is none.
import http from 'node:http';
import tls from 'node:tls';

await fetch('data:,'); // makes the global dispatcher
const Agent = globalThis[Symbol.for('undici.globalDispatcher.1')].constructor;
const proxy = new URL(process.env.https_proxy);

function connect({ hostname }, done) {
	const path = `${hostname}:443`;
	http.request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path, headers: { host: path } })
		.on('connect', (answer, socket) => {
			if (answer.statusCode !== 200)
				return done(new Error(`CONNECT: ${answer.statusCode} ${answer.headers['x-cage-reason']}`));
			const inner = tls.connect({ socket, servername: hostname, ALPNProtocols: ['http/1.1'] });
			inner.once('secureConnect', () => done(null, inner)).once('error', done);
		})
		.on('error', done)
		.end();
}

const [method, url, body, ...words] = process.argv.slice(2);
const headers = words.flatMap((name, i) => (i % 2 ? [] : [[name, words[i + 1]]]));
const dispatcher = new Agent({ connect });
const response = await fetch(url, { method, body: body || undefined, headers, dispatcher });
console.log(response.status);
console.log(await response.text());
await dispatcher.close();
