import { lazy, Suspense, useState } from 'react'
import { demandOk, useAct } from '../parts/act.tsx'
import { Context } from '../parts/context.tsx'
import { Ladder } from '../parts/ladder.tsx'
import { Modal } from '../parts/modal.tsx'
import { Empty, Head, Loading, Shown } from '../parts/panel.tsx'
import { RequestCard } from '../parts/request-card.tsx'
import { Chip, StateMark } from '../parts/state.tsx'
import { clock, money } from '../parts/words.ts'
import { type Agent, type Request, useAsk, useRequests, useRoom, useTeam } from '../room.ts'
import { refine, to, usePlace } from '../route.ts'

const Terminal = lazy(async () => ({ default: (await import('./terminal.tsx')).TerminalPane }))
const TABS = ['terminal', 'mail', 'tasks', 'prompt'] as const

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
            <div className="tabs" role="tablist" aria-label={`About ${agent.name}`}>
              {TABS.map((one) => (
                <button
                  key={one}
                  type="button"
                  role="tab"
                  id={`tab-${one}`}
                  aria-selected={tab === one}
                  aria-controls="tabpanel"
                  onClick={() => refine(to('agents', agent.name, { tab: one }))}
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

const STARTS = new Set(['exited', 'unknown', 'error'])

function Controls({ agent }: { agent: Agent }) {
  const room = useRoom()
  const [act, isBusy] = useAct()
  if (!room.mayAct()) return null
  const request = (action: string, done: string) => () =>
    void act(async () => {
      demandOk(await room.client.command({ type: 'request_action', action, target: agent.name }))
      room.touch('session', 'agent')
      return done
    })
  const interrupt = () =>
    void act(async () => {
      demandOk(
        await room.client.command({
          type: 'send_message',
          to: agent.name,
          priority: 'urgent',
          title: 'Please stop',
          content: `${room.me.name} interrupts you: stop what you are doing and wait for word.`,
        }),
      )
      return `${agent.name} is being interrupted.`
    })
  const isOff = STARTS.has(agent.session)
  return (
    <>
      {isOff ? (
        <button
          type="button"
          className="button"
          data-kind="main"
          disabled={isBusy}
          onClick={request('spawn_agent', `${agent.name} is started.`)}
        >
          Start
        </button>
      ) : (
        <>
          {agent.session === 'busy' ? (
            <button type="button" className="button" disabled={isBusy} onClick={interrupt}>
              Interrupt
            </button>
          ) : null}
          {agent.paused ? (
            <button
              type="button"
              className="button"
              disabled={isBusy}
              onClick={request('resume_session', `${agent.name} goes on.`)}
            >
              Resume
            </button>
          ) : (
            <button
              type="button"
              className="button"
              disabled={isBusy}
              onClick={request('pause_session', `Deliveries to ${agent.name} wait.`)}
            >
              Pause
            </button>
          )}
          <button
            type="button"
            className="button"
            disabled={isBusy}
            onClick={request('reset_session', `${agent.name} begins a new conversation.`)}
          >
            Reset
          </button>
          <button
            type="button"
            className="button"
            data-kind="danger"
            disabled={isBusy}
            onClick={request('terminate_agent', `${agent.name} is stopped.`)}
          >
            Stop
          </button>
        </>
      )}
    </>
  )
}

function MailTab({ agent }: { agent: string }) {
  const { query } = usePlace()
  const chosen = query.get('message') ?? undefined
  const answer = useAsk(
    `mail:${agent}`,
    async (client) => (await client.messages({ agent, limit: 200 })).messages.toReversed(),
    ['message', 'delivery'],
  )
  return (
    <Shown answer={answer}>
      {(mail) =>
        mail.length === 0 ? (
          <Empty title={`Nobody wrote to ${agent} yet, and it wrote to nobody`} />
        ) : (
          <ul className="list">
            {mail.map((one) => (
              <li key={one.id}>
                <button
                  type="button"
                  className="line"
                  aria-expanded={chosen === one.id}
                  onClick={() =>
                    refine(
                      to('agents', agent, { tab: 'mail', message: chosen === one.id ? undefined : one.id }),
                    )
                  }
                >
                  <Chip word={one.delivery} />
                  <span className="line-main">
                    <b>
                      {one.from} → {one.to}
                    </b>{' '}
                    {one.title}
                  </span>
                  <span className="label">
                    {one.id} {clock(one.at)}
                  </span>
                </button>
                {chosen === one.id ? (
                  <div className="opened">
                    <pre className="block">{one.content}</pre>
                    <Ladder id={one.id} />
                  </div>
                ) : null}
              </li>
            ))}
          </ul>
        )
      }
    </Shown>
  )
}

function TasksTab({ agent }: { agent: string }) {
  const answer = useAsk(
    'tasks:all',
    async (client) => (await client.tasks({ state: 'all', limit: 1000 })).tasks,
    ['task'],
  )
  return (
    <Shown answer={answer}>
      {(all) => {
        const mine = all.filter((task) => task.agent === agent || task.delegator === agent).toReversed()
        if (mine.length === 0) return <Empty title={`No task of ${agent}`} />
        return (
          <ul className="list">
            {mine.map((task) => (
              <li key={task.id}>
                <a className="line" href={to('tasks', task.id)}>
                  <Chip word={task.state} />
                  <span className="line-main">
                    <b>
                      {task.delegator} → {task.agent}
                    </b>{' '}
                    {task.task}
                  </span>
                  <span className="label">{task.id}</span>
                </a>
              </li>
            ))}
          </ul>
        )
      }}
    </Shown>
  )
}

function PromptTab({ agent }: { agent: string }) {
  const answer = useAsk(`prompt:${agent}`, async (client) => (await client.prompt(agent)).prompt, ['config'])
  return <Shown answer={answer}>{(prompt) => <pre className="block prompt">{prompt}</pre>}</Shown>
}
