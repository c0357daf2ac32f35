import { findStoredRequest, listStoredRuns, noSuchRun, seeStoredRun } from '../engine/stored-runs.ts'
import { AppError } from '../model/errors.ts'
import { formatId } from '../model/identifier.ts'
import { htmlReport } from '../runs/html.ts'
import { markdownReport } from '../runs/markdown.ts'
import { reportOf } from '../runs/report.ts'
import type { Reader } from '../store/store.ts'
import { type AnswerOf, type QueryOf, ROUTES } from './contract.ts'
import { wireRun, wireWholeRun } from './http/run-view.ts'

export interface StoredRuns {
  list(query: QueryOf<'runs'>): Promise<AnswerOf<'runs'>>
  show(id: string): Promise<AnswerOf<'run'>>
  report(id: string, format: 'markdown' | 'html'): Promise<string>
}

/** The answers of the service on runs, read off a store that no service has: nothing in it is changed. */
export function readStoredRuns(reader: Reader, now: () => number): StoredRuns {
  async function named(id: string) {
    const seen = await seeStoredRun(reader, id)
    if (seen === undefined) throw noSuchRun(id)
    return seen
  }

  return {
    async list(query) {
      const read = ROUTES.runs.query.safeParse(query)
      if (!read.success) {
        const { path, message } = read.error.issues[0]!
        throw new AppError('INVALID_REQUEST', `${path.join('.')}: ${message}`)
      }
      const { state, limit } = read.data
      return { runs: (await listStoredRuns(reader, state, limit)).map((seen) => wireRun(seen, now())) }
    },

    async show(id) {
      return await wireWholeRun(await named(id), now(), async ({ name, state, asks }) => {
        const asked =
          state === 'asking' ? await findStoredRequest(reader, { run: id, node: name, ask: asks }) : undefined
        return {
          ...(asked === undefined ? {} : { requestId: formatId('req', asked.id) }),
          heldUp: 'the service, which is not running',
        }
      })
    },

    async report(id, format) {
      const report = reportOf((await named(id)).run, now())
      return format === 'html' ? htmlReport(report) : markdownReport(report)
    },
  }
}
