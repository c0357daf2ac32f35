/** Starts an agent in a pane of its own. */
import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Launch, Program } from '../../programs/program.ts'
import { environmentOf } from '../environment.ts'
import { startOf } from '../process-table.ts'
import type { AgentStart, SessionPort } from '../runtime.ts'
import type { ServerIdentity } from './connection.ts'
import { TERM } from './environment.ts'
import { writeLaunchFile } from './launch-file.ts'
import { AGENT, MARK } from './leftovers.ts'
import { LOG_FILE, pipeCommand } from './pane.ts'
import { type PlacedPane, placePane } from './placement.ts'
import type { Kept, KeptLaunch } from './saved-state.ts'
import type { Server } from './server.ts'

export interface LauncherOptions {
  server: Server
  panesPerWindow: number
  bin: string
  /** What agents' environments are drawn from. */
  environment: Readonly<NodeJS.ProcessEnv>
}

export interface LaunchRequest {
  agent: AgentStart
  program: Program
  identity: ServerIdentity
  /** The conversation to take up. */
  resume: unknown
  keep: SessionPort['keep']
}

export function createLauncher({ server, panesPerWindow, bin, environment }: LauncherOptions) {
  let placing: Promise<unknown> = Promise.resolve()

  /** One after the other: each looks for a window with room. */
  function place(): Promise<PlacedPane> {
    const placed = placing.then(() => placePane(server, panesPerWindow))
    placing = placed.catch(() => {})
    return placed
  }

  /** Started and piped in one go, so that the log has its first word. */
  async function run(path: string, { name, folder }: AgentStart, launched: Launch, mark: string) {
    const { pane } = await place()
    const set = (option: string, value: string) => ['set-option', '-p', '-t', pane, option, value]
    const pipe = ['pipe-pane', '-t', pane, pipeCommand(join(folder, LOG_FILE))]
    const blocks = await server.run(
      set('remain-on-exit', 'on'),
      set('@orc_title', name),
      set(AGENT, name),
      set(MARK, mark),
      ['respawn-pane', '-k', '-t', pane, '/bin/sh', path],
      ...(launched.isLogged ? [pipe] : []),
      ['display-message', '-p', '-t', pane, '#{pane_pid}'],
    )
    return { pane, pid: Number(blocks.at(-1)!.lines[0]) }
  }

  return async ({ agent, program, identity, resume, keep }: LaunchRequest): Promise<Kept> => {
    const { name, prompt, settings, cwd, folder, nonce } = agent
    const credentials = await agent.credentials({ isResumed: program.resumes && resume !== undefined })
    const order = { name, prompt, settings, cwd, folder, nonce, ...credentials, resume }
    const launched = await program.launch(order)
    const mark = randomBytes(12).toString('hex')
    const env = environmentOf({
      ...{ from: environment, term: TERM, further: launched.env },
      ...{ agent: name, mark, bin, credentials },
    })
    const before: KeptLaunch = { mark, programName: program.name, program: resume }
    await keep(before)
    // From here on it is followed, and ended by whoever follows it.
    agent.gone?.throwIfAborted()
    const path = await writeLaunchFile(folder, { argv: launched.argv, cwd, env })
    try {
      const { pane, pid } = await run(path, agent, launched, mark)
      const process = { pid, startedAt: (await startOf(pid)) ?? 'gone' }
      const kept: Kept = { ...before, program: launched.kept, pane, server: identity, process }
      await keep(kept)
      return kept
    } catch (error) {
      // Nobody ran it, so that it did not remove itself; or it did, and all is well.
      await rm(path, { force: true })
      throw error
    }
  }
}
