// The library ws through the proxy: sends each message when the one before has come back, and prints what it sees, a JSON
// object on each line: the extensions, each message, and the code and reason of the close.
// usage: AGENTS_DIR=DIR node ws.mjs URL MESSAGE...; DIR/node_modules has the library. "LONG" is a long message.
import http from 'node:http';
import { createRequire } from 'node:module';
import tls from 'node:tls';

const WebSocket = createRequire(`${process.env.AGENTS_DIR}/`)('ws');
const [url, ...messages] = process.argv.slice(2);
const { hostname } = new URL(url);
const proxy = new URL(process.env.https_proxy);
const say = (what) => console.log(JSON.stringify(what));

function talk(socket) {
	const ws = new WebSocket(url, { createConnection: () => socket, perMessageDeflate: true });
	const next = () => {
		const message = messages.shift();
		if (message === undefined)
			ws.close(1000, 'done');
		else
			ws.send(message === 'LONG' ? 'x'.repeat(300000) : message);
	};
	ws.on('open', () => {
		say({ extensions: ws.extensions });
		next();
	});
	ws.on('message', (data) => {
		say({ message: data.length > 1000 ? data.length : data.toString() });
		next();
	});
	ws.on('close', (code, reason) => say({ code, reason: reason.toString() }));
	ws.on('unexpected-response', (request, answer) => {
		say({ status: answer.statusCode, reason: answer.headers['x-cage-reason'] });
		request.destroy();
	});
	ws.on('error', (error) => say({ error: error.message }));
}

const path = `${hostname}:443`;
http.request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path, headers: { host: path } })
	.on('connect', (answer, socket) => {
		const inner = tls.connect({ socket, servername: hostname, ALPNProtocols: ['http/1.1'] }, () => talk(inner));
	})
	.end();
