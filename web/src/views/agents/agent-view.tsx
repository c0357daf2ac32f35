import { type KeyboardEvent, Suspense, useState } from 'react'
import type { AnswerOf } from '../../../../src/service/contract.ts'
import { money } from '../../components/format.ts'
import { later } from '../../components/lazy-component.ts'
import { Modal } from '../../components/modal.tsx'
import { demandOk, useAct } from '../../components/notifications.tsx'
import { RequestCard } from '../../components/request-card.tsx'
import { Chip, Context, StateMark } from '../../components/state-label.tsx'
import { Empty, Fault, Head, Loading, Shown } from '../../components/view-layout.tsx'
import {
  type Agent,
  type Request,
  TEAM_TOPICS,
  useAsk,
  useRequests,
  useRoom,
  useTeam,
} from '../../data/service.ts'
import { refine, to, usePlace } from '../../route.ts'
import { MailTab, PromptTab, TasksTab, TranscriptTab } from './agent-tabs.tsx'

const Terminal = later(async () => (await import('./terminal.tsx')).TerminalPane)
const TABS = ['terminal', 'transcript', 'mail', 'tasks', 'prompt'] as const

export function AgentView() {
  const { id = '', query } = usePlace()
  const answer = useTeam()
  const requests = (useRequests().data ?? []).filter(({ asker }) => asker === id)
  const tab = TABS.find((one) => one === query.get('tab')) ?? 'terminal'
  return (
    <Shown answer={answer}>
      {({ agents }) => {
        const agent = agents.find(({ name }) => name.toLowerCase() === id.toLowerCase())
        if (agent === undefined) return <Empty title={`There is no agent ${id}`} />
        return (
          <>
            <Head title={agent.name} note={agent.role}>
              <Controls agent={agent} />
            </Head>
            <Facts agent={agent} />
            {requests.map((request) => (
              <Asking key={request.id} request={request} />
            ))}
            <div
              className="tabs"
              role="tablist"
              aria-label={`About ${agent.name}`}
              onKeyDown={(event) =>
                stepTabs(event, (by) => openTab(agent.name, TABS.at((TABS.indexOf(tab) + by) % TABS.length)!))
              }
            >
              {TABS.map((one) => (
                <button
                  key={one}
                  type="button"
                  role="tab"
                  id={`tab-${one}`}
                  aria-selected={tab === one}
                  aria-controls="tabpanel"
                  tabIndex={tab === one ? 0 : -1}
                  onClick={() => openTab(agent.name, one)}
                >
                  {one === 'mail' ? 'Mail and deliveries' : one[0]!.toUpperCase() + one.slice(1)}
                </button>
              ))}
            </div>
            <div className="tabpanel" role="tabpanel" id="tabpanel" aria-labelledby={`tab-${tab}`}>
              {tab === 'terminal' ? (
                <Suspense fallback={<Loading />}>
                  <Terminal key={agent.name} agent={agent.name} session={agent.session} />
                </Suspense>
              ) : null}
              {tab === 'transcript' ? <TranscriptTab agent={agent.name} /> : null}
              {tab === 'mail' ? <MailTab agent={agent.name} /> : null}
              {tab === 'tasks' ? <TasksTab agent={agent.name} /> : null}
              {tab === 'prompt' ? <PromptTab agent={agent.name} /> : null}
            </div>
          </>
        )
      }}
    </Shown>
  )
}

function openTab(agent: string, tab: (typeof TABS)[number]) {
  refine(to('agents', agent, { tab }))
  document.getElementById(`tab-${tab}`)?.focus()
}

/** One tab is in the order of Tab; the arrows go to the others. */
function stepTabs(event: KeyboardEvent, step: (by: number) => void) {
  const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
  if (by === 0) return
  event.preventDefault()
  step(by)
}

/** In one line, so that the terminal stays in sight. */
function Asking({ request }: { request: Request }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <div className="asking">
      <Chip word={request.kind} tone="asks" />
      <span className="asking-text">{request.question}</span>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        Decide
      </button>
      {isOpen ? (
        <Modal title={`${request.asker} asks`} onClose={() => setOpen(false)}>
          <RequestCard request={request} isModal onDone={() => setOpen(false)} />
        </Modal>
      ) : null}
    </div>
  )
}

function Facts({ agent }: { agent: Agent }) {
  return (
    <p className="facts">
      <StateMark state={agent.session} />
      {agent.status === agent.session ? null : <span>says: {agent.status}</span>}
      {agent.current_task === undefined ? null : <span>{agent.current_task}</span>}
      {agent.waits_for === undefined ? null : <span>messages wait: {agent.waits_for}</span>}
      <span className="label">{agent.program ?? agent.runtime}</span>
      {agent.parent === undefined ? null : (
        <span className="label">
          reports to <a href={to('agents', agent.parent)}>{agent.parent}</a>
        </span>
      )}
      <Context context={agent.context} />
      {agent.spent === undefined ? null : <span>{money(agent.spent)} spent</span>}
    </p>
  )
}

type Action = AnswerOf<'agentActions'>['actions'][number]['action']

/** What the service allows just now; the rest is there as well, and says why not. */
function Controls({ agent }: { agent: Agent }) {
  const room = useRoom()
  return room.mayAct() ? <Buttons agent={agent} /> : null
}

function Buttons({ agent }: { agent: Agent }) {
  const room = useRoom()
  const [act, isBusy] = useAct()
  const { data: known, error } = useAsk(
    `actions:${agent.name}`,
    (client) => client.agentActions(agent.name),
    TEAM_TOPICS,
  )
  const request = (action: Action, done: string) => () =>
    void act(async () => {
      demandOk(await room.client.command({ type: 'request_action', action, target: agent.name }))
      room.touch('session', 'agent', 'action')
      return done
    })
  const interrupt = () =>
    void act(async () => {
      const { stopped, evidence } = await room.client.interrupt(agent.name)
      room.touch('session')
      if (!stopped) throw new Error(`${agent.name} did not stop: ${evidence}`)
      return `${agent.name} was interrupted: ${evidence}`
    })
  const button = (action: Action, word: string, onClick: () => void, kind?: 'main' | 'danger') => {
    const found = known?.actions.find((one) => one.action === action)
    // Until it is known, and where it cannot be, the service says it when it is asked to.
    const isImpossible = found?.possible === false
    const reason = isImpossible ? `${found.reason ?? ''}. ${found.hint ?? ''}` : undefined
    return (
      <button
        type="button"
        className="button"
        data-kind={kind}
        // Not `disabled`: whoever has no mouse gets to the reason as well.
        aria-disabled={isBusy || isImpossible}
        title={reason}
        aria-description={reason}
        onClick={() => {
          if (!isBusy && !isImpossible) onClick()
        }}
      >
        {word}
      </button>
    )
  }
  const can = (action: Action) => known?.actions.find((one) => one.action === action)?.possible
  // One that is ending can be started already; one that can be neither says why it cannot be started.
  const isOff =
    known === undefined
      ? agent.session === 'exited'
      : can('spawn_agent') === true || can('terminate_agent') === false
  return (
    <>
      {error === undefined ? null : <Fault error={error} />}
      {isOff
        ? button('spawn_agent', 'Start', request('spawn_agent', `${agent.name} is started.`), 'main')
        : null}
      {button('interrupt', 'Interrupt', interrupt)}
      {agent.paused
        ? button('resume_session', 'Resume', request('resume_session', `${agent.name} goes on.`))
        : button('pause_session', 'Pause', request('pause_session', `Deliveries to ${agent.name} wait.`))}
      {button('reset_session', 'Reset', request('reset_session', `${agent.name} begins a new conversation.`))}
      {isOff
        ? null
        : button(
            'terminate_agent',
            'Stop',
            request('terminate_agent', `${agent.name} is stopped.`),
            'danger',
          )}
    </>
  )
}
