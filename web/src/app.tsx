import { Suspense, useEffect, useState } from 'react'
import { Compose } from './components/compose-dialog.tsx'
import { Boundary } from './components/error-boundary.tsx'
import { showCount } from './components/favicon-count.ts'
import { counted } from './components/format.ts'
import { HaltBanner, StopButton } from './components/halt-controls.tsx'
import { Icon, type IconName } from './components/icon.tsx'
import { Shortcuts, useKeys } from './components/keyboard-shortcuts.tsx'
import { later } from './components/lazy-component.ts'
import { Arrival } from './components/new-request-dialog.tsx'
import { useAct } from './components/notifications.tsx'
import { Loading } from './components/view-layout.tsx'
import { keepHalf } from './data/api-client.ts'
import { type Link, type Me, useLink, useRequests, useRoom, useTeam } from './data/service.ts'
import { go, to, usePlace } from './route.ts'
import { switchTheme } from './theme.ts'

/** Each is loaded when it is first looked at. */
const VIEWS = {
  team: {
    title: 'Team',
    icon: 'team',
    key: 't',
    part: later(async () => (await import('./views/team/team-view.tsx')).TeamView),
  },
  inbox: {
    title: 'Inbox',
    icon: 'inbox',
    key: 'i',
    part: later(async () => (await import('./views/people/inbox-view.tsx')).InboxView),
  },
  tasks: {
    title: 'Tasks',
    icon: 'tasks',
    key: 'k',
    part: later(async () => (await import('./views/tasks/tasks-view.tsx')).TasksView),
  },
  conversations: {
    title: 'Conversations',
    icon: 'conversations',
    key: 'c',
    part: later(async () => (await import('./views/messages/conversations-view.tsx')).ConversationsView),
  },
  runs: {
    title: 'Runs',
    icon: 'runs',
    key: 'n',
    part: later(async () => (await import('./views/runs/runs-view.tsx')).RunsView),
  },
  github: {
    title: 'GitHub',
    icon: 'github',
    key: 'h',
    part: later(async () => (await import('./views/github/github-view.tsx')).GithubView),
  },
  rules: {
    title: 'Rules',
    icon: 'rules',
    key: 'u',
    part: later(async () => (await import('./views/rules/rules-view.tsx')).RulesView),
  },
  audit: {
    title: 'Audit',
    icon: 'audit',
    key: 'a',
    part: later(async () => (await import('./views/audit/audit-view.tsx')).AuditView),
  },
  metrics: {
    title: 'Metrics',
    icon: 'metrics',
    key: 'm',
    part: later(async () => (await import('./views/metrics/metrics-view.tsx')).MetricsView),
  },
  moderation: {
    title: 'Moderation',
    icon: 'flag',
    key: 'o',
    part: later(async () => (await import('./views/github/moderation-view.tsx')).ModerationView),
  },
} as const satisfies Record<string, { title: string; icon: IconName; key: string; part: unknown }>
const AgentView = later(async () => (await import('./views/agents/agent-view.tsx')).AgentView)

type ViewName = keyof typeof VIEWS

/** Fetches what a view is made of, while it is not known yet who looks at it. */
export function fetchView(name: string) {
  const wanted = name === 'agents' ? AgentView : (VIEWS[name as ViewName]?.part ?? VIEWS.team.part)
  // If it cannot be had, the view says so when it is shown.
  wanted.load().catch(() => {})
}

/** To everyone but moderators there is no such thing. */
function viewsFor({ role }: Me): ViewName[] {
  return (Object.keys(VIEWS) as ViewName[]).filter((name) => name !== 'moderation' || role === 'moderator')
}

export function App({ onLeave }: { onLeave: () => void }) {
  const room = useRoom()
  const { view, id } = usePlace()
  const [composeTo, setComposeTo] = useState<string>()
  const [isHelp, setHelp] = useState(false)
  const requests = useRequests().data ?? []
  const [act] = useAct()
  const views = viewsFor(room.me)
  const current = views.find((name) => name === view) ?? (view === 'agents' ? 'agents' : 'team')
  const Part = current === 'agents' ? AgentView : VIEWS[current].part
  const title = current === 'agents' ? 'Agent' : VIEWS[current].title

  useEffect(() => {
    document.title = requests.length === 0 ? `${title} · Orchub` : `(${requests.length}) ${title} · Orchub`
    showCount(requests.length)
  }, [requests.length, title])

  // On a phone the views are a row that is wider than the screen. Not by scrollIntoView: the next Tab would begin there.
  useEffect(() => {
    const side = document.querySelector('.side')
    const here = side?.querySelector('a[aria-current]')?.getBoundingClientRect()
    if (side == null || here === undefined) return
    const { left, width } = side.getBoundingClientRect()
    side.scrollBy({ left: here.left + here.width / 2 - (left + width / 2) })
  }, [current])

  useKeys({
    ...Object.fromEntries(views.map((name) => [`g ${VIEWS[name].key}`, () => go(to(name))])),
    c: room.mayAct() ? () => setComposeTo('') : undefined,
    '?': () => setHelp(true),
    Escape: () => document.querySelector<HTMLElement>('.aside-head a[aria-label="Close"]')?.click(),
  })

  async function leave() {
    // First: nothing is read any more with a session that ends.
    await room.close()
    await act(async () => {
      await room.client.closeSession()
      return undefined
    })
    keepHalf(undefined)
    onLeave()
  }

  return (
    <div className="shell">
      <button type="button" className="button skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the view
      </button>
      <nav className="side" aria-label="Views">
        <p className="brand">
          <img src="/favicon.svg" alt="" />
          Orchub
        </p>
        {views.map((name) => (
          <a
            key={name}
            href={to(name)}
            aria-current={current === name || (name === 'team' && current === 'agents') ? 'page' : undefined}
          >
            <Icon name={VIEWS[name].icon} />
            {VIEWS[name].title}
            {name === 'inbox' && requests.length > 0 ? (
              <span className="count">
                {requests.length}
                <span className="sr"> waiting for a person</span>
              </span>
            ) : null}
          </a>
        ))}
        <div className="side-foot">
          <span>
            {room.me.name}
            {room.me.role === room.me.name ? '' : ` · ${room.me.role}`}
          </span>
          <button type="button" className="button" data-kind="quiet" onClick={() => void leave()}>
            Sign out
          </button>
        </div>
      </nav>
      <header className="top">
        <LinkState />
        <Vitals />
        <span className="top-space" />
        <button
          type="button"
          className="button"
          data-kind="quiet"
          aria-label="Dark or light"
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
        {room.mayAct() ? (
          <>
            <button type="button" className="button" onClick={() => setComposeTo('')}>
              <Icon name="compose" />
              <span className="only-wide">Message</span>
              <span className="sr only-narrow">Write a message</span>
            </button>
            <StopButton />
          </>
        ) : (
          <span className="label">read only</span>
        )}
      </header>
      <main className="main" id="main" tabIndex={-1}>
        <HaltBanner />
        <Boundary key={current} place={`${current}/${id ?? ''}`}>
          <Suspense fallback={<Loading />}>
            <Part />
          </Suspense>
        </Boundary>
      </main>
      <Arrival isInbox={current === 'inbox'} />
      {composeTo === undefined ? null : <Compose to={composeTo} onClose={() => setComposeTo(undefined)} />}
      {isHelp ? <Shortcuts views={views.map((name) => VIEWS[name])} onClose={() => setHelp(false)} /> : null}
    </div>
  )
}

function LinkState() {
  const link = useLink()
  return (
    <span className="link-state" data-link={link} role="status">
      <span className="dot" data-tone={LINK_TONES[link]} aria-hidden="true" />
      <span>
        {link === 'lost' ? (
          <>
            connection lost<span className="only-wide">, trying again</span>
          </>
        ) : link === 'live' ? (
          'live'
        ) : (
          'connecting'
        )}
      </span>
    </span>
  )
}

const LINK_TONES: Record<Link, string> = { opening: 'off', live: 'calm', lost: 'bad' }

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
        <b>{busy}</b> of {counted(data.agents.length, 'agent')} busy
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
