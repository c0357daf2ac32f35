/**
 * The common approach: spawn `tmux capture-pane` every 500 ms, and for each new command on the screen one tmux process
 * each for the buffer, the paste and Enter. No guard, no store, no evidence.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { answerParent } from './child.ts'

export interface PollOrder {
  socket: string
  agents: Record<string, { with: { command: readonly string[] } }>
}

const EVERY_MS = 500
const { socket, agents } = JSON.parse(process.argv[2]!) as PollOrder
const COMMAND =
  /<orc-command name="send_message" to="(\w+)" title="([^"]+)"[^>]*>\n([\s\S]*?)\n<\/orc-command>/g

function tmux(words: readonly string[], input = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    const child: ChildProcess = spawn('tmux', ['-L', socket, '-f', '/dev/null', ...words])
    let output = ''
    child.stdout!.on('data', (chunk: Buffer) => (output += chunk))
    child.stdin!.on('error', () => {})
    child.stdin!.end(input)
    child.on('error', reject)
    child.on('close', (code) => (code === 0 ? resolve(output) : reject(new Error(`tmux ${words[0]} failed`))))
  })
}

const panes: Record<string, string> = {}
const size = ['-x', '220', '-y', '50']
for (const [name, { with: settings }] of Object.entries(agents)) {
  const place = name === 'Sender' ? ['new-session', '-d', ...size] : ['new-window', '-d']
  panes[name] = (await tmux([...place, '-P', '-F', '#{pane_id}', ...settings.command])).trim()
}

const seen = new Set<string>()

async function poll() {
  const screen = await tmux(['capture-pane', '-p', '-J', '-t', panes.Sender!])
  const lines = screen.split('\n').map((line) => line.trimEnd())
  for (const [, to, title, content] of lines.join('\n').matchAll(COMMAND)) {
    if (seen.has(title!)) continue
    seen.add(title!)
    const id = `msg_${seen.size}`
    const head = `[ORCHUB MESSAGE ${id}]\nFrom: Sender\nTitle: ${title}\nPriority: normal`
    await tmux(['load-buffer', '-b', id, '-'], `${head}\n\n${content}\n\n[END ORCHUB MESSAGE ${id}]`)
    await tmux(['paste-buffer', '-p', '-d', '-b', id, '-t', panes[to!]!])
    await tmux(['send-keys', '-t', panes[to!]!, 'Enter'])
  }
}

let isOn = false
let timer: NodeJS.Timeout | undefined
async function round() {
  const begunAt = performance.now()
  await poll()
  if (isOn) timer = setTimeout(() => void round(), Math.max(0, EVERY_MS - (performance.now() - begunAt)))
}

answerParent({
  /** Measures in its own phase of the run; idle while others are measured. */
  poll(on: boolean) {
    isOn = on
    clearTimeout(timer)
    if (on) void round()
  },
  state: () => 'idle',
  pane: (name: string) => panes[name],
  screen: (name: string) => tmux(['capture-pane', '-p', '-t', panes[name]!]),
  async close() {
    isOn = false
    clearTimeout(timer)
    await tmux(['kill-server']).catch(() => {})
  },
})
