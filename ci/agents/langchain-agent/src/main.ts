#!/usr/bin/env node
// The program: ACP on standard input and output.
import { Readable, Writable } from "node:stream"
import { ndJsonStream } from "@agentclientprotocol/sdk"
import { app } from "./app.js"
import { fault } from "./fault.js"
import { killServers } from "./tools/mcp.js"

const connection = app().connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>))
await connection.closed
killServers()
if (!fault("process-stays-at-end-of-input-with-mcp")) process.exit(0) // an MCP server or a model that still talks must not keep it
