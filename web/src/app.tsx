import { Suspense, useEffect, useState } from 'react'
import { ErrorBoundary } from './components/error-boundary.tsx'
import { pluralize } from './components/format.ts'
import { Icon, type IconName } from './components/icon.tsx'
import { ShortcutsDialog, useShortcuts } from './components/keyboard-shortcuts.tsx'
import { lazyComponent } from './components/lazy-component.ts'
import { useAction } from './components/notifications.tsx'
import { Loading } from './components/view-layout.tsx'
import { storeSessionHalf } from './data/api-client.ts'
import type { ConnectionState } from './data/event-feed.ts'
import { useConnection, useServiceQuery, useTeam } from './data/queries.ts'
import { type Me, useService } from './data/service.ts'
import { linkTo, navigate, useRoute } from './route.ts'
import { switchTheme } from './theme.ts'
import { HaltBanner, StopButton } from './views/halt/halt-controls.tsx'
import { ComposeDialog } from './views/messages/compose-dialog.tsx'
import { NewRequestDialog } from './views/people/new-request-dialog.tsx'

/** Each view is loaded when it is first opened. */
const VIEWS = {
  team: {
    title: 'Team',
    icon: 'team',
    key: 't',
    part: lazyComponent(async () => (await import('./views/agents/team-view.tsx')).TeamView),
  },
  inbox: {
    title: 'Inbox',
    icon: 'inbox',
    key: 'i',
    part: lazyComponent(async () => (await import('./views/people/inbox-view.tsx')).InboxView),
  },
  tasks: {
    title: 'Tasks',
    icon: 'tasks',
    key: 'k',
    part: lazyComponent(async () => (await import('./views/tasks/tasks-view.tsx')).TasksView),
  },
  conversations: {
    title: 'Conversations',
    icon: 'conversations',
    key: 'c',
    part: lazyComponent(
      async () => (await import('./views/messages/conversations-view.tsx')).ConversationsView,
    ),
  },
  runs: {
    title: 'Runs',
    icon: 'runs',
    key: 'n',
    part: lazyComponent(async () => (await import('./views/runs/runs-view.tsx')).RunsView),
  },
  github: {
    title: 'GitHub',
    icon: 'github',
    key: 'h',
    part: lazyComponent(async () => (await import('./views/github/github-view.tsx')).GithubView),
  },
  rules: {
    title: 'Rules',
    icon: 'rules',
    key: 'u',
    part: lazyComponent(async () => (await import('./views/rules/rules-view.tsx')).RulesView),
  },
  audit: {
    title: 'Audit',
    icon: 'audit',
    key: 'a',
    part: lazyComponent(async () => (await import('./views/audit/audit-view.tsx')).AuditView),
  },
  metrics: {
    title: 'Metrics',
    icon: 'metrics',
    key: 'm',
    part: lazyComponent(async () => (await import('./views/messages/metrics-view.tsx')).MetricsView),
  },
  moderation: {
    title: 'Moderation',
    icon: 'flag',
    key: 'o',
    part: lazyComponent(async () => (await import('./views/github/moderation-view.tsx')).ModerationView),
  },
} as const satisfies Record<string, { title: string; icon: IconName; key: string; part: unknown }>
const AgentView = lazyComponent(async () => (await import('./views/agents/agent-view.tsx')).AgentView)

type ViewName = keyof typeof VIEWS

/** Loads the code of a view while the session is still being checked. */
export function fetchView(name: string) {
  const wanted = name === 'agents' ? AgentView : (VIEWS[name as ViewName]?.part ?? VIEWS.team.part)
  // The view itself shows the error when it is opened.
  wanted.load().catch(() => {})
}

/** Only moderators learn that the moderation view exists (S3.15). */
function viewsFor({ role }: Me): ViewName[] {
  return (Object.keys(VIEWS) as ViewName[]).filter((name) => name !== 'moderation' || role === 'moderator')
}

export function App({ onLeave }: { onLeave: () => void }) {
  const service = useService()
  const { view, id } = useRoute()
  const [composeTo, setComposeTo] = useState<string>()
  const [isHelp, setHelp] = useState(false)
  const requests = useServiceQuery('openRequests', []).data ?? []
  const [act] = useAction()
  const views = viewsFor(service.me)
  const current = views.find((name) => name === view) ?? (view === 'agents' ? 'agents' : 'team')
  const Part = current === 'agents' ? AgentView : VIEWS[current].part
  const title = current === 'agents' ? 'Agent' : VIEWS[current].title

  useEffect(() => {
    document.title = requests.length === 0 ? `${title} · Orchub` : `(${requests.length}) ${title} · Orchub`
    showRequestCount(requests.length)
  }, [requests.length, title])

  // On a phone the navigation is wider than the screen. scrollIntoView would also move where the next Tab starts.
  useEffect(() => {
    const side = document.querySelector('.side')
    const here = side?.querySelector('a[aria-current]')?.getBoundingClientRect()
    if (side == null || here === undefined) return
    const { left, width } = side.getBoundingClientRect()
    side.scrollBy({ left: here.left + here.width / 2 - (left + width / 2) })
  }, [current])

  useShortcuts({
    ...Object.fromEntries(views.map((name) => [`g ${VIEWS[name].key}`, () => navigate(linkTo(name))])),
    c: service.mayAct() ? () => setComposeTo('') : undefined,
    '?': () => setHelp(true),
    Escape: () => document.querySelector<HTMLElement>('.aside-head a[aria-label="Close"]')?.click(),
  })

  async function leave() {
    // Stop reading before the session ends.
    await service.close()
    await act(async () => {
      await service.client.closeSession()
      return undefined
    })
    storeSessionHalf(undefined)
    onLeave()
  }

  return (
    <div className="shell">
      <button type="button" className="button skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to content
      </button>
      <nav className="side" aria-label="Views">
        <p className="brand">
          <img src="/favicon.svg" alt="" />
          Orchub
        </p>
        {views.map((name) => (
          <a
            key={name}
            href={linkTo(name)}
            aria-current={current === name || (name === 'team' && current === 'agents') ? 'page' : undefined}
          >
            <Icon name={VIEWS[name].icon} />
            {VIEWS[name].title}
            {name === 'inbox' && requests.length > 0 ? (
              <span className="count">
                {requests.length}
                <span className="sr"> open requests</span>
              </span>
            ) : null}
          </a>
        ))}
        <div className="side-foot">
          <span>
            {service.me.name}
            {service.me.role === service.me.name ? '' : ` · ${service.me.role}`}
          </span>
          <button type="button" className="button" data-kind="quiet" onClick={() => void leave()}>
            Sign out
          </button>
        </div>
      </nav>
      <header className="top">
        <ConnectionLabel />
        <Vitals />
        <span className="top-space" />
        <button
          type="button"
          className="button"
          data-kind="quiet"
          aria-label="Switch between dark and light"
          onClick={switchTheme}
        >
          <Icon name="theme" />
        </button>
        <button
          type="button"
          className="button only-wide"
          data-kind="quiet"
          aria-label="Keyboard shortcuts"
          onClick={() => setHelp(true)}
        >
          <Icon name="keyboard" />
        </button>
        {service.mayAct() ? (
          <>
            <button type="button" className="button" onClick={() => setComposeTo('')}>
              <Icon name="compose" />
              <span className="only-wide">Message</span>
              <span className="sr only-narrow">Write a message</span>
            </button>
            <StopButton />
          </>
        ) : (
          <span className="label">
            {service.me.role === 'moderator' ? 'read only, except moderation' : 'read only'}
          </span>
        )}
      </header>
      <main className="main" id="main" tabIndex={-1}>
        <HaltBanner />
        <ErrorBoundary key={current} resetKey={`${current}/${id ?? ''}`}>
          <Suspense fallback={<Loading />}>
            <Part />
          </Suspense>
        </ErrorBoundary>
      </main>
      <NewRequestDialog isInbox={current === 'inbox'} />
      {composeTo === undefined ? null : (
        <ComposeDialog to={composeTo} onClose={() => setComposeTo(undefined)} />
      )}
      {isHelp ? (
        <ShortcutsDialog views={views.map((name) => VIEWS[name])} onClose={() => setHelp(false)} />
      ) : null}
    </div>
  )
}

function ConnectionLabel() {
  const connection = useConnection()
  return (
    <span className="link-state" data-link={connection} role="status">
      <span className="dot" data-tone={CONNECTION_TONES[connection]} aria-hidden="true" />
      <span>
        {connection === 'lost' ? (
          <>
            connection lost<span className="only-wide">, reconnecting</span>
          </>
        ) : connection === 'live' ? (
          'live'
        ) : (
          'connecting'
        )}
      </span>
    </span>
  )
}

const CONNECTION_TONES: Record<ConnectionState, string> = { connecting: 'off', live: 'calm', lost: 'bad' }

function Vitals() {
  const { data } = useTeam()
  if (data === undefined) return null
  const busy = data.agents.filter(({ session }) => session === 'busy').length
  const total = (wanted: string) =>
    data.deliveries?.reduce((sum, { count, state }) => (state === wanted ? sum + count : sum), 0)
  const waiting = total('queued')
  const unclear = total('uncertain') ?? 0
  return (
    <span className="vitals">
      <span>
        <b>{busy}</b> of {pluralize(data.agents.length, 'agent')} busy
      </span>
      {waiting === undefined ? null : (
        <span>
          <b>{waiting.toLocaleString('en')}</b> queued
        </span>
      )}
      {unclear === 0 ? null : (
        <span>
          <b>{unclear}</b> uncertain
        </span>
      )}
    </span>
  )
}

/** Uses one file per number: the CSP rejects images that the page generates. */
const FAVICONS = import.meta.glob<string>('./favicons/*.svg', {
  eager: true,
  query: '?url',
  import: 'default',
})
const PLAIN = '/favicon.svg'

/** Shows the number of open requests in the favicon, and as a badge where the page is installed as an app. */
export function showRequestCount(count: number) {
  const wanted = count === 0 ? PLAIN : FAVICONS[`./favicons/${count > 9 ? 'more' : count}.svg`]!
  const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')
  if (icon !== null && icon.getAttribute('href') !== wanted) icon.setAttribute('href', wanted)
  const badge = navigator as Navigator & { setAppBadge?: (count: number) => Promise<void> }
  badge.setAppBadge?.(count).catch(() => {})
}
