import { type KeyboardEvent, Suspense, useState } from 'react'
import type { AnswerOf } from '../../../../src/api/contract.ts'
import { formatCost } from '../../components/format.ts'
import { lazyComponent } from '../../components/lazy-component.ts'
import { Modal } from '../../components/modal.tsx'
import { requireSuccess, useAction } from '../../components/notifications.tsx'
import { ContextUsage, programOf, StateLabel } from '../../components/state-label.tsx'
import { EmptyState, ErrorMessage, Loading, QueryResult, ViewHeader } from '../../components/view-layout.tsx'
import { type Agent, type HumanRequest, useServiceQuery, useTeam } from '../../data/queries.ts'
import { useService } from '../../data/service.ts'
import { linkTo, replaceRoute, useRoute } from '../../route.ts'
import { RequestCard, RequestKind } from '../people/request-card.tsx'
import { MailTab, PromptTab, TasksTab, TranscriptTab } from './agent-tabs.tsx'

const Terminal = lazyComponent(async () => (await import('./terminal.tsx')).TerminalPane)
const TABS = ['terminal', 'transcript', 'mail', 'tasks', 'prompt'] as const

export function AgentView() {
  const service = useService()
  const { id = '', query } = useRoute()
  const answer = useTeam()
  const requests = (useServiceQuery('openRequests', []).data ?? []).filter(({ asker }) => asker === id)
  const tab = TABS.find((one) => one === query.get('tab')) ?? 'terminal'
  return (
    <QueryResult answer={answer}>
      {({ agents }) => {
        const agent = agents.find(({ name }) => name.toLowerCase() === id.toLowerCase())
        if (agent === undefined)
          return (
            <EmptyState title={`There is no agent named ${id}`}>
              <a href={linkTo('team')}>Show the team</a>
            </EmptyState>
          )
        return (
          <>
            <ViewHeader title={agent.name} note={agent.role}>
              {service.mayAct() ? <Controls agent={agent} /> : null}
            </ViewHeader>
            <Facts agent={agent} />
            {requests.map((request) => (
              <OpenRequest key={request.id} request={request} />
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
                  {one === 'mail' ? 'Messages' : one[0]!.toUpperCase() + one.slice(1)}
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
    </QueryResult>
  )
}

function openTab(agent: string, tab: (typeof TABS)[number]) {
  replaceRoute(linkTo('agents', agent, { tab }))
  document.getElementById(`tab-${tab}`)?.focus()
}

/** The Tab key reaches one tab; the arrow keys move to the others. */
function stepTabs(event: KeyboardEvent, step: (by: number) => void) {
  const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
  if (by === 0) return
  event.preventDefault()
  step(by)
}

/** A single line, so that the terminal stays visible. */
function OpenRequest({ request }: { request: HumanRequest }) {
  const [isOpen, setOpen] = useState(false)
  const isQuestion = request.decisions.includes('answer')
  return (
    <div className="asking">
      <RequestKind kind={request.kind} />
      <span className="asking-text">{request.question}</span>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        {request.decisions.length === 0 ? 'Show' : isQuestion ? 'Answer' : 'Decide'}
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
      <StateLabel state={agent.session} />
      {agent.status === agent.session ? null : <span>status: {agent.status}</span>}
      {agent.current_task === undefined ? null : <span>{agent.current_task}</span>}
      {agent.waits_for === undefined ? null : <span>messages are waiting: {agent.waits_for}</span>}
      <span className="label">program: {programOf(agent)}</span>
      {agent.parent === undefined ? null : (
        <span className="label">
          reports to <a href={linkTo('agents', agent.parent)}>{agent.parent}</a>
        </span>
      )}
      <ContextUsage context={agent.context} />
      {agent.spent === undefined ? null : <span>{formatCost(agent.spent)} spent</span>}
    </p>
  )
}

type Action = AnswerOf<'agentActions'>['actions'][number]['action']

/** Actions that are not possible right now stay visible and say why. */
function Controls({ agent }: { agent: Agent }) {
  const service = useService()
  const [act, isBusy] = useAction()
  const { data: known, error } = useServiceQuery('agentActions', [agent.name])
  const request = (action: Action, done: string) => () =>
    void act(async () => {
      requireSuccess(await service.client.command({ type: 'request_action', action, target: agent.name }))
      service.refreshTopics('session', 'agent', 'action')
      return done
    })
  const interrupt = () =>
    void act(async () => {
      const { stopped, evidence } = await service.client.interrupt(agent.name)
      service.refreshTopics('session')
      if (!stopped) throw new Error(`${agent.name} did not stop: ${evidence}`)
      return `Interrupted ${agent.name}: ${evidence}`
    })
  const button = (action: Action, word: string, onClick: () => void, kind?: 'main' | 'danger') => {
    const found = known?.actions.find((one) => one.action === action)
    // Before the service has answered, every button works, and a refusal shows as a notification.
    const isImpossible = found?.possible === false
    const reason = isImpossible ? `${found.reason ?? ''}. ${found.hint ?? ''}` : undefined
    return (
      <button
        type="button"
        className="button"
        data-kind={kind}
        // Not `disabled`: keyboard users must be able to reach the reason.
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
  // An agent that is shutting down can be started already. If neither is possible, Start says why.
  const isOff =
    known === undefined
      ? agent.session === 'exited'
      : can('spawn_agent') === true || can('terminate_agent') === false
  return (
    <>
      {error === undefined ? null : <ErrorMessage error={error} />}
      {isOff
        ? button('spawn_agent', 'Start', request('spawn_agent', `Starting ${agent.name}.`), 'main')
        : null}
      {button('interrupt', 'Interrupt', interrupt)}
      {agent.paused
        ? button('resume_session', 'Resume', request('resume_session', `${agent.name} resumed.`))
        : button(
            'pause_session',
            'Pause',
            request('pause_session', `${agent.name} is paused; its messages wait.`),
          )}
      {button('reset_session', 'Reset', request('reset_session', `${agent.name} starts a new conversation.`))}
      {isOff
        ? null
        : button('terminate_agent', 'Stop', request('terminate_agent', `Stopping ${agent.name}.`), 'danger')}
    </>
  )
}
