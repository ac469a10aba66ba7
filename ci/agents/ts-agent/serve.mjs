// Serves an agent over Streamable HTTP and WebSocket, both at the URL that it prints.
import http from 'node:http';
import { createNodeHttpHandler, createNodeWebSocketUpgradeHandler } from '@agentclientprotocol/sdk/experimental/node';
import { AcpServer } from '@agentclientprotocol/sdk/experimental/server';
import { WebSocketServer } from 'ws';

/** Listens at HOST:PORT; each connection is an agent of its own. */
export async function serve(createAgent, at) {
  const [host, port] = at.split(':');
  const server = new AcpServer({ createAgent });
  const front = http.createServer(createNodeHttpHandler(server));
  front.on('upgrade', createNodeWebSocketUpgradeHandler(server, new WebSocketServer({ noServer: true })));
  await new Promise((resolve) => front.listen(Number(port), host, resolve));
  console.log(`http://${host}:${front.address().port}/acp`);
}
