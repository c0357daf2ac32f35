import type { Runtime } from '../runtimes/runtime.ts'
import { type Env, type LoadedConfig, readConfig } from './config.ts'

/** Reads orc.yaml and lets each runtime check its own settings, with the line of what is wrong. */
export function loadTeam(file: string, runtimes: readonly Runtime[], env: Env = process.env): LoadedConfig {
  const loaded = readConfig(file, env)
  if (!loaded.ok) return loaded
  const problems = loaded.config.agents.flatMap((agent) => {
    const runtime = runtimes.find((one) => one.name === agent.runtime)
    const found = runtime?.check({ program: agent.program, settings: agent.with }) ?? []
    return found.map(({ path, message, hint }) =>
      loaded.problemAt(['agents', agent.name, 'with', ...path], message, hint),
    )
  })
  return problems.length === 0 ? loaded : { ok: false, problems }
}
