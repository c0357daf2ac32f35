/**
 * The machine of a user who has an agent program set up: logged in, past its first-run questions, trusting the
 * folder. The product never writes any of this; only here the model is a scripted one.
 */
import { mkdir } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { type AgentName, agentProgram } from '../../../scripts/install-agents.ts'
import { prepareClaudeCode } from './claude-code.ts'
import { prepareCodex } from './codex.ts'
import { prepareGemini } from './gemini.ts'
import { prepareOpencode } from './opencode.ts'

export interface HomeOptions {
  /** Becomes HOME. One for each agent. */
  readonly folder: string
  /** The agent's working folder, which it trusts. */
  readonly cwd: string
  readonly modelUrl: string
  /** Tells the model server who calls: `sk-ant-fake-NAME`. */
  readonly key: string
}

export interface Home {
  /** All that the program needs beside its arguments; nothing of the machine's own environment leaks in. */
  readonly env: Readonly<Record<string, string>>
  /** The agent's `with:` in orc.yaml. */
  readonly settings: { readonly command: string; readonly env: Readonly<Record<string, string>> }
}

/** Writes the program's files into its HOME and says which variables it needs beside HOME. */
export type PrepareProgram = (options: HomeOptions) => Promise<Record<string, string>>

const PREPARE: Record<AgentName, PrepareProgram> = {
  'claude-code': prepareClaudeCode,
  'claude-code-2.1.197': prepareClaudeCode,
  'claude-agent-acp': prepareClaudeCode,
  codex: prepareCodex,
  'codex-acp': prepareCodex,
  gemini: prepareGemini,
  opencode: prepareOpencode,
}

export async function prepareHome(agent: AgentName, options: HomeOptions): Promise<Home> {
  await mkdir(options.folder, { recursive: true })
  await mkdir(options.cwd, { recursive: true })
  const ownBin = join(import.meta.dirname, '../../../node_modules/.bin')
  const env = {
    HOME: options.folder,
    // Several of the programs are scripts for a newer Node than the machine may have.
    PATH: [ownBin, process.env.PATH].join(delimiter),
    LANG: 'C.UTF-8',
    TERM: 'xterm-256color',
    ...(await PREPARE[agent](options)),
  }
  return { env, settings: { command: agentProgram(agent), env } }
}
