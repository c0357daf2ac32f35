import { type FSWatcher, readFileSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { Log } from '../base/log.ts'
import type { Engine } from '../engine.ts'
import { type Config, formatProblems, type LoadedConfig } from './config.ts'

export interface ConfigStatus {
  file?: string
  loadedAt: number
  /** What is wrong with the file as it is now; the configuration before it stays in force. */
  problem?: string
}

export interface ConfigWatchOptions {
  config: Config
  engine: Engine
  log: Log
  enabled: boolean
  load(file: string): LoadedConfig
}

/** Editors write in several steps; this long after the last one the file is read. */
const SETTLE_MS = 60

/** Rules reload without a restart. A broken file keeps the old ones and says what is wrong, with the line. */
export function watchConfig({ config, engine, log, enabled, load }: ConfigWatchOptions) {
  const { file } = config
  let status: ConfigStatus = { loadedAt: engine.clock.now(), ...(file === undefined ? {} : { file }) }
  let lastText = file === undefined ? '' : readText(file)
  let watcher: FSWatcher | undefined
  let settle: NodeJS.Timeout | undefined
  let reloading: Promise<void> = Promise.resolve()

  async function reload(path: string) {
    const text = readText(path)
    if (text === lastText) return
    lastText = text
    const loaded = load(path)
    if (!loaded.ok) {
      const problem = formatProblems(loaded.problems, path)
      status = { ...status, problem }
      log.warn({ file: path }, `the configuration has mistakes; the one before it stays in force\n${problem}`)
      await note('config.rejected', `the configuration has mistakes: ${firstLine(problem)}`)
      return
    }
    await engine.reload(loaded.config)
    status = { file: path, loadedAt: engine.clock.now() }
    log.info({ file: path }, 'the configuration was reloaded')
    await note('config.loaded', 'the configuration was reloaded')
  }

  const note = (type: string, text: string) =>
    engine.store.write((tx) => tx.audit({ type, class: 'internal', actor: 'orchestrator', text }))

  function changed(path: string) {
    clearTimeout(settle)
    settle = setTimeout(() => {
      reloading = reloading
        .then(() => reload(path))
        .catch((error: unknown) => {
          log.error({ err: error }, 'the configuration could not be reloaded')
        })
    }, SETTLE_MS)
  }

  if (enabled && file !== undefined) {
    // The folder, not the file: editors replace the file, and a watch on it would look at the old one for ever.
    watcher = watch(dirname(file), (_, name) => {
      if (name === null || name === basename(file)) changed(file)
    })
    watcher.on('error', (error) => log.error({ err: error }, 'the configuration is no longer watched'))
  }

  return {
    status: () => status,
    async close() {
      watcher?.close()
      clearTimeout(settle)
      await reloading
    },
  }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0]!
}
