import { join, relative } from 'node:path'
import { type Config, defineConfig } from '../config.ts'
import { type Orchub, startOrchub } from '../main.ts'
import type { AuditEntry } from '../model/audit-entry.ts'
import { AppError } from '../model/errors.ts'
import { DEMO_TEAM } from './demo/team.ts'
import { trafficLine } from './demo/traffic.ts'
import { paint } from './output.ts'

export interface DemoOptions {
  folder: string
  write(line: string): void
}

/** Runs the built-in team and prints what passes between its agents, until told to stop. */
export async function startDemo({ folder, write }: DemoOptions): Promise<Orchub> {
  const stateFolder = join(folder, '.orc', 'demo')
  const config = defineConfig(DEMO_TEAM, { env: { ORC_HOME: stateFolder } })
  const orchub = await startOnFreePort(config)
  const home = relative(folder, stateFolder) || stateFolder
  orchub.switchboard.store.onCommit((entries) => {
    for (const entry of entries) {
      const line = trafficLine(entry)
      if (line !== undefined) write(line)
      if (entry.type === 'human.asked') write(answerHint(home, entry))
    }
  })
  for (const line of [
    paint('bold', 'Orchub: three scripted agents at work, no key, no network.'),
    '',
    `  API        ${orchub.url}   (token: ${home}/operator.token)`,
    `  Look in    ORC_HOME=${home} ./orc inbox | audit | messages | list-agents`,
    `  Join in    ORC_HOME=${home} ./orc send-message --to Worker --title Hello "A word from a person"`,
    '  Stop       Ctrl-C',
    '',
  ]) {
    write(line)
  }
  return orchub
}

function answerHint(home: string, entry: AuditEntry): string {
  const id = String(entry.data?.request_id)
  return `           you decide: ORC_HOME=${home} ./orc approve ${id}   (or reject ${id} --comment "…")`
}

/** The usual port if it is free, so that the address stays the same from one run to the next. */
async function startOnFreePort(config: Config): Promise<Orchub> {
  try {
    return await startOrchub({ config })
  } catch (error) {
    const cause = error instanceof AppError ? (error.cause as NodeJS.ErrnoException | undefined) : undefined
    if (cause?.code !== 'EADDRINUSE') throw error
    return await startOrchub({ config, port: 0 })
  }
}
