import type { z } from 'zod'
import { lastOfRun, readRunEntries } from '../audit/store.ts'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Reader } from '../store/store.ts'
import { RUN_ROUTES, type RunUpdate } from './api.ts'
import { htmlReport, markdownReport, reportOf } from './report.ts'
import { findAsked } from './requests.ts'
import { isRunOpen } from './run.ts'
import { endOfRun, runEventOf, wireRun, wireWholeRun } from './run-view.ts'
import { daemonOfRun, noSuchRun, runIds, seeStoredRun } from './store.ts'

export interface StoredRuns {
  list(query: z.input<typeof RUN_ROUTES.runs.query>): Promise<z.output<typeof RUN_ROUTES.runs.answer>>
  show(id: string): Promise<z.output<typeof RUN_ROUTES.run.answer>>
  /** Events of the last round, or after a sequence number, with its end if the report is written. */
  events(id: string, after?: number): Promise<RunUpdate[]>
  report(id: string, format: 'markdown' | 'html'): Promise<string>
}

const ALL = 2 ** 31 - 1

/** Answers like the service, from a store that no service uses. Reads only. */
export function readStoredRuns(reader: Reader, now: () => number): StoredRuns {
  async function named(id: string) {
    const seen = await seeStoredRun(reader, id)
    if (seen === undefined) throw noSuchRun(id)
    return seen
  }

  return {
    async list(query) {
      const read = RUN_ROUTES.runs.query.safeParse(query)
      if (!read.success) {
        const { path, message } = read.error.issues[0]!
        throw new AppError('INVALID_REQUEST', `${path.join('.')}: ${message}`)
      }
      const { state, limit } = read.data
      const seen = await Promise.all((await runIds(reader, state, limit)).map(named))
      return { runs: seen.map((one) => wireRun(one, now())) }
    },

    async show(id) {
      return await wireWholeRun(await named(id), now(), async ({ name, state, asks }) => {
        const asked =
          state === 'asking' ? await findAsked(reader, { run: id, node: name, ask: asks }) : undefined
        return {
          ...(asked === undefined ? {} : { requestId: formatId('req', asked.id) }),
          blockedBy: 'the service, which is not running',
        }
      })
    },

    async events(id, after) {
      const { head } = (await named(id)).run
      const key = parseId('run', id)!
      const audit = {
        daemon: (await daemonOfRun(reader, id))!,
        all: reader.all.bind(reader),
        get: reader.get.bind(reader),
      }
      const from = after ?? Math.max(0, (await lastOfRun(audit, key, 'run.begun')) - 1)
      const entries = await readRunEntries(audit, key, { after: from, limit: ALL })
      const events = entries.filter(({ data }) => data?.run_id === id).map(runEventOf)
      const end = isRunOpen(head) ? [] : [endOfRun(head, events.at(-1)?.seq ?? from)]
      return [...events, ...end]
    },

    async report(id, format) {
      const report = reportOf((await named(id)).run, now())
      return format === 'html' ? htmlReport(report) : markdownReport(report)
    },
  }
}
