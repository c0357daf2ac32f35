import { useEffect } from 'react'
import { Ladder } from '../../components/delivery-steps.tsx'
import { clock } from '../../components/format.ts'
import { Chip } from '../../components/state-label.tsx'
import { Empty, Shown } from '../../components/view-layout.tsx'
import { Rows } from '../../components/virtual-list.tsx'
import { screenTopic, useAsk, useRoom, useTasks } from '../../data/service.ts'
import { whileSeen } from '../../data/while-visible.ts'
import { refine, to, usePlace } from '../../route.ts'

export function MailTab({ agent }: { agent: string }) {
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
          <Rows
            items={mail}
            size={37}
            label={`Mail of ${agent}, newest first`}
            keyOf={({ id }) => id}
            chosen={chosen}
          >
            {(one) => (
              <>
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
              </>
            )}
          </Rows>
        )
      }
    </Shown>
  )
}

/** What it was told and what it said, oldest first; the rest is in its program's own record. */
export function TranscriptTab({ agent }: { agent: string }) {
  const answer = useAsk(
    `transcript:${agent}`,
    async (client) => {
      const [{ said }, { messages }] = await Promise.all([
        client.transcript(agent),
        client.messages({ agent, limit: 60 }),
      ])
      const told = messages.filter((one) => one.to === agent && HEARD.has(one.delivery))
      return [
        ...said.map(({ at, text }) => ({ at, who: agent, title: '', text, id: `said ${at}` })),
        ...told.map(({ at, from, title, content, id }) => ({ at, who: from, title, text: content, id })),
      ].toSorted((one, other) => one.at.localeCompare(other.at))
    },
    ['message', 'delivery', 'session', 'command', 'agent', screenTopic(agent)],
    1000,
  )
  const room = useRoom()
  // What it says in the middle of a turn is no event; but it is to be seen where it works.
  useEffect(
    () =>
      whileSeen(async (signal) => {
        for await (const _ of room.client.terminalEvents(agent, { signal, for: 'notice' }))
          room.touch(screenTopic(agent))
      }),
    [agent, room],
  )
  return (
    <Shown answer={answer}>
      {(lines) =>
        lines.length === 0 ? (
          <Empty title={`${agent} has said nothing since the service found it`}>
            <p>What it says, and what it is told, is shown here as it comes.</p>
          </Empty>
        ) : (
          <Rows items={lines} size={90} label={`Transcript of ${agent}`} keyOf={({ id }) => id} isAtEnd>
            {({ at, who, title, text }) => (
              <div className="said" data-own={who === agent}>
                <p className="label">
                  <b>{who}</b> {clock(at)} {title}
                </p>
                <pre>{text}</pre>
              </div>
            )}
          </Rows>
        )
      }
    </Shown>
  )
}

/** What has at least been entered. */
const HEARD: ReadonlySet<string> = new Set(['submitted', 'read'])

export function TasksTab({ agent }: { agent: string }) {
  const answer = useTasks('all')
  return (
    <Shown answer={answer}>
      {(all) => {
        const mine = all.filter((task) => task.agent === agent || task.delegator === agent).toReversed()
        if (mine.length === 0) return <Empty title={`No task of ${agent}`} />
        return (
          <Rows items={mine} size={37} label={`Tasks of ${agent}, newest first`} keyOf={({ id }) => id}>
            {(task) => (
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
            )}
          </Rows>
        )
      }}
    </Shown>
  )
}

export function PromptTab({ agent }: { agent: string }) {
  const answer = useAsk(`prompt:${agent}`, async (client) => (await client.prompt(agent)).prompt, ['config'])
  return <Shown answer={answer}>{(prompt) => <pre className="block prompt">{prompt}</pre>}</Shown>
}
