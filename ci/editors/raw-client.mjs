#!/usr/bin/env node
// raw-client: drives an agent of the Agent Client Protocol (version 1) over bare pipes.
// Usage: node raw-client.mjs PROGRAM [ARG...]      Prompts: $PROMPTS, one a line.

import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promises as fsp } from 'node:fs'
import path from 'node:path'
import { StringDecoder } from 'node:string_decoder'

const SECOND = 1000
const LIMITS = { setup: 60 * SECOND, prompt: 20 * SECOND, cancel: 10 * SECOND, goodbye: 5 * SECOND }
const UNLIMITED_OUTPUT = 16 * 1024 * 1024 // what a terminal keeps when the agent sets no limit

const warn = (text) => process.stderr.write(`raw-client: ${text}\n`)
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value) => typeof value === 'string'
const oneLine = (value, max = 160) => {
  const text = (isText(value) ? value : JSON.stringify(value) ?? 'nothing').replace(/\s+/g, ' ').trim()
  return text.length > max ? `${text.slice(0, max - 1)}…` : text
}
const objectsOf = (value) => (Array.isArray(value) ? value.filter(isObject) : [])
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

// An error that the agent gets as the answer to its request.
class RpcError extends Error {
  constructor(code, message, data) {
    super(message)
    Object.assign(this, { code, data })
  }
}
const badParams = (message) => new RpcError(-32602, message)
const notFound = (message) => new RpcError(-32002, message)

// ------------------------------------------------------------------------------------------------------------
// Wire: lines in, lines out.

// Calls back for each line of a stream, the last one also without its newline.
function eachLine(stream, onLine) {
  let parts = []
  stream.on('data', (chunk) => {
    let from = 0
    for (let at; (at = chunk.indexOf(10, from)) >= 0; from = at + 1) {
      parts.push(chunk.subarray(from, at))
      const line = Buffer.concat(parts).toString('utf8')
      parts = []
      onLine(line)
    }
    if (from < chunk.length) parts.push(chunk.subarray(from))
  })
  stream.on('end', () => {
    if (parts.length) onLine(Buffer.concat(parts).toString('utf8'))
  })
}

// The source text of the top-level "id" of a message that parsed: numbers beyond 2^53 must go back unchanged.
function sourceOfId(line) {
  const endOfString = (from) => {
    let at = from + 1
    while (line[at] !== '"') at += line[at] === '\\' ? 2 : 1
    return at + 1
  }
  const endOfValue = (from) => {
    let at = from
    for (let depth = 0; depth > 0 || (line[at] !== ',' && line[at] !== '}'); ) {
      if (line[at] === '"') {
        at = endOfString(at)
        continue
      }
      if (line[at] === '{' || line[at] === '[') depth++
      if (line[at] === '}' || line[at] === ']') depth--
      at++
    }
    return at
  }
  let found
  for (let at = line.indexOf('{'); line[at] !== '}'; ) {
    const key = line.indexOf('"', at)
    const keyEnd = endOfString(key)
    const value = line.indexOf(':', keyEnd) + 1
    at = endOfValue(value)
    if (JSON.parse(line.slice(key, keyEnd)) === 'id') found = line.slice(value, at).trim()
  }
  return found
}

// The agent's process. `on` holds the callbacks: request, notification, response, gone.
function launch(program, args, on) {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'], detached: true })
  const agent = { child, gone: false, exit: null, hungUp: false }

  agent.write = (text) => {
    if (!agent.hungUp && child.stdin.writable) child.stdin.write(`${text}\n`)
  }

  const markGone = (why) => {
    if (agent.gone) return
    agent.gone = true
    on.gone(why)
  }
  const words = () => {
    if (agent.exit === null) return 'The agent closed its output.'
    return `The agent died (${agent.exit.signal ?? `status ${agent.exit.code}`}).`
  }

  agent.ended = new Promise((resolve) => {
    child.on('error', (problem) => {
      markGone(`The agent did not start: ${problem.message}`)
      resolve()
    })
    child.once('exit', async (code, signal) => {
      agent.exit = { code, signal }
      resolve()
      await sleep(SECOND) // its last lines may still be in the pipe
      markGone(words())
    })
  })
  agent.drained = new Promise((resolve) => child.stdout.once('close', resolve))
  child.stdout.once('end', async () => {
    await Promise.race([agent.ended, sleep(SECOND)])
    markGone(words())
  })
  child.stdin.on('error', (problem) => agent.hungUp || warn(`writing to the agent: ${problem.message}`))

  eachLine(child.stdout, (line) => {
    if (line.trim() === '') return
    let message
    try {
      message = JSON.parse(line)
    } catch {
      return warn(`not JSON, skipped: ${oneLine(line)}`)
    }
    if (!isObject(message)) return warn(`not a message, skipped: ${oneLine(line)}`)
    const hasId = Object.hasOwn(message, 'id')
    try {
      if (Object.hasOwn(message, 'method')) {
        if (hasId) on.request(message, sourceOfId(line))
        else on.notification(message)
      } else if (hasId) {
        on.response(message)
      } else {
        warn(`neither method nor id, skipped: ${oneLine(line)}`)
      }
    } catch (problem) {
      warn(`a message was too odd: ${problem.message}`)
    }
  })

  // Closes stdin, waits, kills the whole group.
  agent.goodbye = async () => {
    agent.hungUp = true
    child.stdin.end()
    await Promise.race([agent.ended, sleep(LIMITS.goodbye)])
    agent.kill()
    await Promise.race([Promise.all([agent.ended, agent.drained]), sleep(SECOND)])
  }
  agent.kill = () => {
    if (child.pid === undefined || agent.exit !== null) return
    try {
      process.kill(-child.pid, 'SIGKILL')
    } catch {
      child.kill('SIGKILL')
    }
  }
  return agent
}

// ------------------------------------------------------------------------------------------------------------
// View: what the user sees on stdout.

function createView(out) {
  let open = null // the text that is streaming
  let midLine = false
  let deaf = false
  const tools = new Map()
  out.on('error', () => {
    deaf = true
  })

  const emit = (text) => {
    if (text === '' || deaf) return
    out.write(text)
    midLine = !text.endsWith('\n')
  }
  const say = (text) => {
    emit(midLine ? `\n${text}\n` : `${text}\n`)
    open = null
  }
  const stream = (label, messageId, text) => {
    const id = `${label}/${isText(messageId) ? messageId : ''}`
    if (open !== id) emit(`${midLine ? '\n' : ''}${label}`)
    open = id
    emit(text)
  }

  // The text of a content block, undefined when it is malformed.
  const blockText = (block) => {
    if (!isObject(block)) return undefined
    switch (block.type) {
      case 'text':
        return isText(block.text) ? block.text : undefined
      case 'image':
      case 'audio':
        return `(${block.type})`
      case 'resource_link':
        return `(link ${oneLine(block.uri)})`
      case 'resource':
        return isText(block.resource?.text) ? block.resource.text : `(resource ${oneLine(block.resource?.uri)})`
      default:
        return undefined
    }
  }
  const chunk = (label) => (update) => {
    const text = blockText(update.content)
    if (text === undefined) warn(`malformed ${update.sessionUpdate}`)
    else stream(label, update.messageId, text)
  }

  const tool = (update) => {
    if (!isText(update.toolCallId)) return warn('tool call without id')
    const old = tools.get(update.toolCallId)
    const start = { title: update.toolCallId, kind: 'other', status: 'pending' }
    const tool = { ...start, ...(update.sessionUpdate === 'tool_call' ? {} : old) }
    for (const field of ['title', 'kind', 'status']) if (isText(update[field])) tool[field] = update[field]
    tools.set(update.toolCallId, tool)
    const head = `* ${oneLine(tool.title)} <${tool.kind}> ${tool.status}`
    if (tool.head !== head) say(head)
    tool.head = head
    for (const { path: file, line } of objectsOf(update.locations)) {
      say(`  @ ${oneLine(file)}${Number.isInteger(line) ? `:${line}` : ''}`)
    }
    for (const item of objectsOf(update.content)) {
      if (item.type === 'content') {
        const text = blockText(item.content)
        if (text !== undefined) say(text.replace(/\n$/, '').replace(/^/gm, '  '))
      } else if (item.type === 'diff') {
        say(`  ${isText(item.oldText) ? 'edits' : 'creates'} ${oneLine(item.path)}`)
      } else if (item.type === 'terminal') {
        say(`  terminal ${oneLine(item.terminalId)}`)
      }
    }
  }

  const options = (list) => objectsOf(list).forEach((o) => say(`= ${oneLine(o.name)}: ${oneLine(o.currentValue)}`))
  const modes = (state) => {
    if (!isObject(state)) return
    const names = objectsOf(state.availableModes).map((mode) => oneLine(mode.name ?? mode.id))
    say(`= mode ${oneLine(state.currentModeId)} out of: ${names.join(', ')}`)
  }

  const kinds = {
    user_message_chunk: chunk('me: '),
    agent_message_chunk: chunk(''),
    agent_thought_chunk: chunk('~ '),
    tool_call: tool,
    tool_call_update: tool,
    plan: ({ entries }) => {
      say('Plan')
      objectsOf(entries).forEach((e, n) => say(`  ${n + 1}. ${oneLine(e.content)} [${oneLine(e.status)}]`))
    },
    current_mode_update: ({ currentModeId }) => isText(currentModeId) && say(`= mode ${oneLine(currentModeId)}`),
    config_option_update: ({ configOptions }) => options(configOptions),
    available_commands_update: ({ availableCommands }) =>
      say(`= commands ${objectsOf(availableCommands).map((c) => oneLine(c.name)).join(', ')}`),
    session_info_update: ({ title }) => isText(title) && say(`= title ${oneLine(title)}`),
    usage_update: ({ used, size }) => [used, size].every(Number.isInteger) && say(`= ${used}/${size} tokens`),
  }
  // Kinds that are not in the table belong to versions this client does not know.
  const update = (value) => {
    if (isText(value.sessionUpdate) && Object.hasOwn(kinds, value.sessionUpdate)) kinds[value.sessionUpdate](value)
  }
  return { say, update, options, modes }
}

// ------------------------------------------------------------------------------------------------------------
// Workspace: files below one folder.

function createWorkspace(root) {
  // Follows links of the part that exists; the file itself may be missing.
  const real = async (name) => {
    try {
      return await fsp.realpath(name)
    } catch (problem) {
      if (problem.code !== 'ENOENT') throw problem
      if (await fsp.lstat(name).catch(() => null)) throw badParams(`${name} is a dangling link`)
      return path.join(await real(path.dirname(name)), path.basename(name))
    }
  }
  const locate = async ({ path: name }) => {
    if (!isText(name) || !path.isAbsolute(name) || name.includes('\0')) throw badParams('path: absolute path wanted')
    const file = await real(path.resolve(name))
    const base = await fsp.realpath(root)
    if (file !== base && !file.startsWith(base.endsWith('/') ? base : `${base}/`)) {
      throw badParams(`${name} is not in the session's folder`)
    }
    const stat = await fsp.stat(file).catch(() => null)
    if (stat && !stat.isFile()) throw badParams(`${name} is not a file`)
    return { file, exists: stat !== null }
  }
  const optionalCount = (value) => (Number.isInteger(value) && value >= 0 ? value : undefined)

  return {
    async read(params) {
      const { file, exists } = await locate(params)
      const [line, limit] = [optionalCount(params.line), optionalCount(params.limit)]
      if (line === 0) throw badParams('line: the first line is 1')
      if (!exists) throw notFound(`${file} does not exist`)
      const content = await fsp.readFile(file, 'utf8')
      if (line === undefined && limit === undefined) return { content }
      const lines = content.split('\n')
      const from = (line ?? 1) - 1
      return { content: lines.slice(from, limit === undefined ? undefined : from + limit).join('\n') }
    },
    async write(params) {
      if (!isText(params.content)) throw badParams('content: text wanted')
      const { file } = await locate(params)
      await fsp.mkdir(path.dirname(file), { recursive: true })
      await fsp.writeFile(file, params.content)
      return {}
    },
  }
}

// ------------------------------------------------------------------------------------------------------------
// Terminals: commands that run for the agent.

// Keeps the end of a text within a number of bytes.
function createTail(limit) {
  let chunks = []
  let size = 0
  let truncated = false
  return {
    push(text) {
      if (text === '') return
      const bytes = Buffer.from(text)
      chunks.push(bytes)
      size += bytes.length
      if (size > limit) truncated = true
      while (chunks.length > 1 && size - chunks[0].length >= limit) size -= chunks.shift().length
    },
    read() {
      let bytes = Buffer.concat(chunks)
      if (bytes.length > limit) {
        let at = bytes.length - limit
        while (at < bytes.length && (bytes[at] & 0xc0) === 0x80) at++ // on to the start of a character
        bytes = bytes.subarray(at)
      }
      chunks = bytes.length ? [bytes] : []
      size = bytes.length
      return { output: bytes.toString('utf8'), truncated }
    },
  }
}

// Runs a command. stdout and stderr are two pipes, so their order among each other is that of arrival.
async function openTerminal({ command, args, env, cwd, limit }) {
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const tail = createTail(limit)
  let status = null
  const over = new Promise((resolve) => {
    const closed = new Promise((done) => child.once('close', done))
    child.once('exit', async (exitCode, signal) => {
      await Promise.race([closed, sleep(SECOND)]) // something in the background may hold the pipes
      status = { exitCode, signal }
      resolve(status)
    })
  })
  for (const pipe of [child.stdout, child.stderr]) {
    const decoder = new StringDecoder('utf8')
    pipe.on('data', (bytes) => tail.push(decoder.write(bytes)))
    pipe.on('end', () => tail.push(decoder.end()))
    pipe.on('error', () => {})
  }
  await new Promise((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  child.on('error', (problem) => warn(`${command}: ${problem.message}`))
  return {
    over,
    output: () => ({ ...tail.read(), ...(status ? { exitStatus: status } : {}) }),
    kill() {
      if (status && child.stdout.closed && child.stderr.closed) return
      try {
        process.kill(-child.pid, 'SIGKILL')
      } catch {
        // already gone
      }
    },
  }
}

function createTerminals(root) {
  const open = new Map()
  const pick = ({ terminalId }) => {
    if (!isText(terminalId)) throw badParams('terminalId: text wanted')
    const terminal = open.get(terminalId)
    if (!terminal) throw notFound(`no terminal ${oneLine(terminalId)}`)
    return terminal
  }
  return {
    async create(params) {
      const { command } = params
      if (!isText(command) || command === '') throw badParams('command: name of a program wanted')
      const args = Array.isArray(params.args) ? params.args.filter(isText) : []
      const cwd = isText(params.cwd) ? params.cwd : root
      if (!path.isAbsolute(cwd)) throw badParams('cwd: absolute path wanted')
      if ([command, cwd, ...args].some((text) => text.includes('\0'))) throw badParams('NUL is not allowed')
      const folder = await fsp.stat(cwd).catch(() => null)
      if (!folder?.isDirectory()) throw notFound(`no folder ${cwd}`)
      const env = { ...process.env }
      for (const { name, value } of objectsOf(params.env)) {
        if (isText(name) && isText(value) && !`${name}${value}`.includes('\0')) env[name] = value
      }
      const limit = Number.isInteger(params.outputByteLimit) && params.outputByteLimit >= 0
      const terminal = await openTerminal({
        command, args, env, cwd, limit: limit ? params.outputByteLimit : UNLIMITED_OUTPUT,
      }).catch((problem) => {
        throw problem.code === 'ENOENT' ? notFound(`no program ${command}`) : problem
      })
      const terminalId = `t-${randomUUID()}`
      open.set(terminalId, terminal)
      return { terminalId }
    },
    output: async (params) => pick(params).output(),
    wait: async (params) => pick(params).over,
    async kill(params) {
      pick(params).kill()
      return {}
    },
    async release(params) {
      pick(params).kill()
      open.delete(params.terminalId)
      return {}
    },
    killAll: () => open.forEach((terminal) => terminal.kill()),
  }
}

// ------------------------------------------------------------------------------------------------------------
// Client: who answers what, and the conversation.

// Rejects once where that is offered, chooses nothing otherwise. Also checks the request.
function rejectOnce({ toolCall, options }) {
  if (!isObject(toolCall) || !isText(toolCall.toolCallId)) throw badParams('toolCall: object with toolCallId wanted')
  if (!Array.isArray(options)) throw badParams('options: list wanted')
  const kinds = ['allow_once', 'allow_always', 'reject_once', 'reject_always']
  for (const option of options) {
    if (!isObject(option) || !isText(option.optionId) || !isText(option.name) || !kinds.includes(option.kind)) {
      throw badParams('options: each needs optionId, name and a known kind')
    }
  }
  return options.find((option) => option.kind === 'reject_once')
}

async function main() {
  const [program, ...args] = process.argv.slice(2)
  if (program === undefined) {
    process.stderr.write('usage: raw-client.mjs PROGRAM [ARG...]\n')
    return 2
  }
  const cwd = process.cwd()
  const view = createView(process.stdout)
  const workspace = createWorkspace(cwd)
  const terminals = createTerminals(cwd)
  const calls = new Map() // our open requests: id -> { resolve, reject }
  const asked = new Set() // the agent's open requests
  let sessionId = null
  let promptId = null // id of the prompt under way
  let cancelling = false
  let reportGone
  const gone = new Promise((_, reject) => {
    reportGone = reject
  })
  gone.catch(() => {})

  const answerPermission = async (params) => {
    const option = rejectOnce(params)
    const title = oneLine(params.toolCall.title ?? params.toolCall.toolCallId)
    if (cancelling || !option) {
      view.say(`? ${title}: cancelled`)
      return { outcome: { outcome: 'cancelled' } }
    }
    view.say(`? ${title}: ${oneLine(option.name)}`)
    return { outcome: { outcome: 'selected', optionId: option.optionId } }
  }
  const services = new Map([
    ['fs/read_text_file', workspace.read],
    ['fs/write_text_file', workspace.write],
    ['terminal/create', terminals.create],
    ['terminal/output', terminals.output],
    ['terminal/wait_for_exit', terminals.wait],
    ['terminal/kill', terminals.kill],
    ['terminal/release', terminals.release],
  ])

  const settle = (request, key, value) => {
    if (!asked.delete(request)) return
    agent.write(`{"jsonrpc":"2.0","id":${request.source},"${key}":${JSON.stringify(value)}}`)
  }
  const refuse = (request, code, message) => settle(request, 'error', { code, message })

  // Files are touched in the order of the requests, since agents may send a read right behind a write.
  let files = Promise.resolve()
  const inOrder = (work) => {
    const result = files.then(work)
    files = result.catch(() => {})
    return result
  }

  const serve = async ({ method, params }) => {
    if (!isText(method)) throw new RpcError(-32600, 'method: text wanted')
    if (method === 'elicitation/create') throw badParams('no mode of elicitation was advertised')
    const service = method === 'session/request_permission' ? answerPermission : services.get(method)
    if (!service) throw new RpcError(-32601, `${oneLine(method)}: no such method`)
    if (!isObject(params)) throw badParams('params: object wanted')
    if (!isText(params.sessionId) || params.sessionId !== sessionId) throw badParams('sessionId: no such session')
    return method.startsWith('fs/') ? inOrder(() => service(params)) : service(params)
  }

  const agent = launch(program, args, {
    request(message, source) {
      if (agent.hungUp) return
      const request = { id: message.id, method: message.method, source }
      asked.add(request)
      serve(message).then(
        (result) => settle(request, 'result', result),
        (problem) => refuse(request, problem instanceof RpcError ? problem.code : -32603, problem.message),
      )
    },
    notification({ method, params }) {
      if (method === 'session/update') {
        if (!isObject(params) || !isObject(params.update)) return warn('malformed session/update')
        if (sessionId !== null && params.sessionId !== sessionId) return warn('update for another session')
        view.update(params.update)
      } else if (method === '$/cancel_request' && isObject(params)) {
        // Only the wait for a command takes long enough to be taken back.
        for (const request of [...asked]) {
          if (request.method === 'terminal/wait_for_exit' && request.id === params.requestId) {
            refuse(request, -32800, 'taken back')
          }
        }
      }
    },
    response(message) {
      const call = isText(message.id) ? calls.get(message.id) : undefined
      if (!call) return warn(`answer to no question of ours: ${oneLine(message)}`)
      calls.delete(message.id)
      if (message.id === promptId) [promptId, cancelling] = [null, false]
      if (message.error !== undefined && message.error !== null) {
        const { code, message: text, data } = isObject(message.error) ? message.error : { message: message.error }
        call.reject(new RpcError(code, oneLine(text), data))
      } else {
        call.onResult?.(message.result)
        call.resolve(message.result)
      }
    },
    gone: (why) => reportGone(new Error(why)),
  })

  const notify = (method, params) => agent.write(JSON.stringify({ jsonrpc: '2.0', method, params }))
  const call = (method, params, onResult) => {
    const id = `raw-${calls.size}-${randomUUID()}`
    const answer = new Promise((resolve, reject) => calls.set(id, { resolve, reject, onResult }))
    answer.catch(() => {})
    agent.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    return { id, answer }
  }
  // Waits for an answer, for the death of the agent, or for the time to run out (then: LATE).
  const LATE = Symbol('late')
  const within = async (answer, ms) => {
    let timer
    const late = new Promise((resolve) => {
      timer = setTimeout(resolve, ms, LATE)
    })
    try {
      return await Promise.race([answer, gone, late])
    } finally {
      clearTimeout(timer)
    }
  }
  const demand = async (method, params, onResult) => {
    const result = await within(call(method, params, onResult).answer, LIMITS.setup).catch((problem) => {
      throw problem instanceof RpcError ? new Error(`${method}: ${problem.message} (${problem.code})`) : problem
    })
    if (result === LATE) throw new Error(`${method} was not answered in ${LIMITS.setup / SECOND} s.`)
    if (!isObject(result)) throw new Error(`${method} was answered with ${oneLine(result)}.`)
    return result
  }

  const converse = async (text) => {
    view.say(`me: ${text}`)
    cancelling = false
    const { id, answer } = call('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
    promptId = id
    try {
      let result = await within(answer, LIMITS.prompt)
      if (result === LATE) {
        view.say(`! no answer in ${LIMITS.prompt / SECOND} s, cancelling`)
        // No permission request can be pending here: the policy answers at once. Later ones see `cancelling`.
        if (promptId === id) {
          cancelling = true
          notify('session/cancel', { sessionId })
        }
        result = await within(answer, LIMITS.cancel)
      }
      if (result === LATE) {
        calls.delete(id)
        view.say('! no answer to the cancelled prompt, next')
        return false
      }
      view.say(`. ${isText(result?.stopReason) ? oneLine(result.stopReason) : 'ended without a reason'}`)
    } catch (problem) {
      if (!(problem instanceof RpcError)) throw problem
      const data = problem.data === undefined || problem.data === null ? '' : ` ${oneLine(problem.data)}`
      view.say(`! ${problem.message} (${oneLine(problem.code)})${data}`)
    }
    return true
  }

  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(name, () => {
      agent.kill()
      terminals.killAll()
      process.exit(name === 'SIGINT' ? 130 : name === 'SIGTERM' ? 143 : 129)
    })
  }

  let status = 0
  try {
    const hello = await demand('initialize', {
      protocolVersion: 1,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
      clientInfo: { name: 'raw-client', title: 'Raw client', version: '0.1.0' },
    })
    const version = hello.protocolVersion
    if (version !== 1) throw new Error(`The agent chose version ${oneLine(version)}, not 1.`)
    if (isObject(hello.agentInfo)) view.say(`= ${oneLine(hello.agentInfo.name)} ${oneLine(hello.agentInfo.version)}`)

    // The session is known before the next line of the agent is looked at.
    const session = await demand('session/new', { cwd, mcpServers: [] }, (result) => {
      if (isText(result?.sessionId)) sessionId = result.sessionId
    })
    if (sessionId === null) throw new Error('session/new gave no sessionId.')
    view.modes(session.modes)
    view.options(session.configOptions)

    const given = (process.env.PROMPTS ?? '').split('\n').filter((text) => text.trim() !== '')
    for (const text of given.length ? given : ['Say hello.', 'And once more.']) {
      if (!(await converse(text))) status = 1
    }
  } catch (problem) {
    view.say(`! ${problem.message}`)
    status = 1
  }
  for (const request of [...asked]) refuse(request, -32800, 'the client ends')
  await agent.goodbye()
  terminals.killAll()
  return status
}

process.exit(await main())
