#!/usr/bin/env node
// The agent with one mistake in it: FAULT=NAME says which, faults.yaml what it does. Without FAULT it is the agent as
// it comes.
import './patch.mjs';
import { pathToFileURL } from 'node:url';
import { createRequire } from 'node:module';

const entry = createRequire(import.meta.url).resolve('@agentclientprotocol/claude-agent-acp/dist/index.js');
await import(pathToFileURL(entry).href);
