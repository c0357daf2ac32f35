import { type RouteHandler, SENT } from '../../api/http/call.ts'
import { streamChanges } from '../../api/http/silent-changes.ts'
import { readGithubLog } from '../log.ts'
import { markOfDeliveries } from '../store/deliveries.ts'

const iso = (at: number) => new Date(at).toISOString()

/** What came from GitHub, what was proposed and what became of it. */
export const showGithub: RouteHandler<'github'> = async ({ engine }, { query }) => {
  const settings = engine.team().config.github
  const { events, actions, halted } = await readGithubLog(engine.store, query.limit)
  return {
    connected: settings !== undefined && engine.github !== undefined,
    dry_run: settings?.dryRun ?? false,
    repositories: [...(settings?.repositories ?? [])],
    events: events.map(({ at, ...event }) => ({ ...event, at: iso(at) })),
    actions: actions.map(({ at, ...action }) => ({ ...action, at: iso(at) })),
    halted: halted.map(({ at, ...one }) => ({ ...one, at: iso(at) })),
  }
}

export const streamGithub: RouteHandler<'githubChanges'> = async (desk, call) => {
  await streamChanges(desk, call, () => markOfDeliveries(desk.engine.store))
  return SENT
}
