/**
 * Installs the agent programs that tests/real-agents/ runs, in pinned versions, below `.cache/agents/`: about 1.9 GB, so
 * `npm test` never does. A folder there is complete or not there at all, so that several may run this at once.
 *
 *     node scripts/install-agents.ts [--only NAME]…
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { parseArgs } from 'node:util'
import { isRunning } from '../src/base/process.ts'

export interface Agent {
  readonly package: string
  readonly version: string
  readonly bin: string
  /** Below `.cache/agents/`. Agents that share a folder are installed together: an adapter beside its program. */
  readonly folder: string
}

/** The only place that names versions of agent programs. */
export const AGENTS = {
  'claude-code': {
    package: '@anthropic-ai/claude-code',
    version: '2.1.325',
    bin: 'claude',
    folder: 'claude-code',
  },
  'claude-code-2.1.197': {
    package: '@anthropic-ai/claude-code',
    version: '2.1.197',
    bin: 'claude',
    folder: 'claude-code-2.1.197',
  },
  codex: { package: '@openai/codex', version: '0.166.0', bin: 'codex', folder: 'codex' },
  gemini: { package: '@google/gemini-cli', version: '0.61.0', bin: 'gemini', folder: 'gemini' },
  opencode: { package: 'opencode-ai', version: '1.18.33', bin: 'opencode', folder: 'opencode' },
  'codex-acp': {
    package: '@agentclientprotocol/codex-acp',
    version: '2.6.0',
    bin: 'codex-acp',
    folder: 'codex',
  },
  'claude-agent-acp': {
    package: '@agentclientprotocol/claude-agent-acp',
    version: '0.99.0',
    bin: 'claude-agent-acp',
    folder: 'claude-agent-acp',
  },
} as const satisfies Record<string, Agent>

export type AgentName = keyof typeof AGENTS

/** npm runs only the listed install scripts. The two denied ones compile parts that Gemini doesn't need. */
const ALLOW_SCRIPTS = {
  '@anthropic-ai/claude-code': true,
  'opencode-ai': true,
  'node-pty': false,
  '@github/keytar': false,
}

const root = join(import.meta.dirname, '..')
const place = join(root, '.cache', 'agents')

/** The path of the agent's executable; throws if it isn't installed. */
export function agentProgram(name: AgentName): string {
  const { folder, bin } = AGENTS[name]
  const path = join(place, folder, 'node_modules', '.bin', bin)
  if (!existsSync(path))
    throw new Error(`${name} is not installed; run: node scripts/install-agents.ts --only ${name}`)
  return path
}

function membersOf(folder: string): Agent[] {
  return Object.values(AGENTS).filter((agent) => agent.folder === folder)
}

/** Also identifies the installed version: an older table has another text. */
function manifest(folder: string): string {
  const dependencies = Object.fromEntries(membersOf(folder).map((agent) => [agent.package, agent.version]))
  return `${JSON.stringify({ private: true, dependencies, allowScripts: ALLOW_SCRIPTS }, null, 2)}\n`
}

async function isInstalled(folder: string): Promise<boolean> {
  const stamp = await readFile(join(place, folder, 'package.json'), 'utf8').catch(() => '')
  return stamp === manifest(folder)
}

type Ended = { code: number | null; output: string }

function run(command: string, args: readonly string[], cwd: string): Promise<Ended> {
  // Some programs are scripts that need a newer Node than the machine may have.
  const PATH = `${join(root, 'node_modules/.bin')}${delimiter}${process.env.PATH}`
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, PATH },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.stderr.on('data', (chunk) => (output += chunk))
    child.on('error', (error) => resolve({ code: null, output: error.message }))
    child.on('close', (code) => resolve({ code, output }))
  })
}

async function install(folder: string): Promise<void> {
  const fresh = join(place, `${folder}.${process.pid}.new`)
  await mkdir(fresh, { recursive: true })
  try {
    await writeFile(join(fresh, 'package.json'), manifest(folder))
    // The platform's binary is an optional dependency, and install scripts put it in place.
    const npm = ['install', '--include=optional', '--ignore-scripts=false', '--engine-strict=false']
    const { code, output } = await run('npm', [...npm, '--no-audit', '--no-fund', '--loglevel=error'], fresh)
    if (code !== 0) throw new Error(`npm install failed:\n${output}\nIs the npm registry reachable?`)
    await tryOut(folder, fresh)
    await takeItsPlace(fresh, join(place, folder))
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}

/** npm succeeds even if an optional binary or an install script was left out. */
async function tryOut(folder: string, at: string): Promise<void> {
  for (const { bin, version, package: name } of membersOf(folder)) {
    const { code, output } = await run(join(at, 'node_modules', '.bin', bin), ['--version'], at)
    if (code !== 0 || !output.includes(version))
      throw new Error(
        `${name}@${version} does not run on this machine: ${output.trim() || `exit code ${code}`}`,
      )
  }
}

async function takeItsPlace(fresh: string, target: string): Promise<void> {
  const old = `${fresh}.old`
  await rename(target, old).catch(() => {})
  // Another process may have installed the same in the meantime; either will do.
  await rename(fresh, target).catch((error) => {
    if (error.code !== 'ENOTEMPTY') throw error
  })
  await rm(old, { recursive: true, force: true })
}

/** Removes the leftovers of killed runs. */
async function sweep(): Promise<void> {
  for (const entry of await readdir(place)) {
    const pid = /\.(\d+)\.new(\.old)?$/.exec(entry)?.[1]
    if (pid && !isRunning(Number(pid))) await rm(join(place, entry), { recursive: true, force: true })
  }
}

/** Installs the missing ones, one after the other, and reports on stderr. */
export async function installAgents(names: readonly AgentName[]): Promise<void> {
  await mkdir(place, { recursive: true })
  await sweep()
  const folders = [...new Set(names.map((name) => AGENTS[name].folder))]
  const missing: string[] = []
  for (const folder of folders) if (!(await isInstalled(folder))) missing.push(folder)
  for (const [index, folder] of missing.entries()) {
    process.stderr.write(`orchub: installing ${folder} (${index + 1} of ${missing.length}) … `)
    const startedAt = performance.now()
    await install(folder)
    process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(0)} s\n`)
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { only: { type: 'string', multiple: true } } })
  const names = Object.keys(AGENTS) as AgentName[]
  const wanted = values.only ?? names
  for (const name of wanted)
    if (!(name in AGENTS))
      throw new Error(`no agent program is called ${name}; there are: ${names.join(', ')}`)
  await installAgents(wanted as AgentName[])
}

if (import.meta.main) {
  await main().catch((error: Error) => {
    process.stderr.write(`\norchub: ${error.message}\n`)
    process.exitCode = 1
  })
}
