import { type FSWatcher, readFileSync, watch } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { AuditDraft } from '../audit/entry.ts'
import type { Log } from '../base/log.ts'
import { type Config, formatProblems, type LoadedConfig } from './config.ts'

export interface ConfigStatus {
  file?: string
  loadedAt: number
  /** The mistakes in the file as it is now. The previous configuration stays in force. */
  problem?: string
}

interface ConfigWatchOptions {
  config: Config
  now: () => number
  apply(config: Config): Promise<void>
  audit(draft: AuditDraft): Promise<void>
  log: Log
  enabled: boolean
  load(file: string): LoadedConfig
}

/** Editors write in several steps: read the file this long after the last one. */
const SETTLE_MS = 60

/** Rules reload without a restart. A broken file leaves the old configuration in force and reports its mistakes. */
export function watchConfig({ config, now, apply, audit, log, enabled, load }: ConfigWatchOptions) {
  const { file } = config
  let status: ConfigStatus = { loadedAt: now(), ...(file === undefined ? {} : { file }) }
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
      const problem = formatProblems(loaded.error, path)
      status = { ...status, problem }
      log.warn({ file: path }, `the configuration has mistakes; the previous one stays in force\n${problem}`)
      await note('config.rejected', `the configuration has mistakes: ${firstLine(problem)}`)
      return
    }
    await apply(loaded.value.config)
    status = { file: path, loadedAt: now() }
    log.info({ file: path }, 'the configuration was reloaded')
    await note('config.loaded', 'the configuration was reloaded')
  }

  const note = (type: string, text: string) => audit({ type, class: 'internal', actor: 'orchestrator', text })

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
    // Watch the folder: editors replace the file, and a watch on the file would keep following the old one.
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
