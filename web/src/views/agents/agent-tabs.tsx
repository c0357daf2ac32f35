import { useEffect, useMemo } from 'react'
import { formatTime } from '../../components/format.ts'
import { Chip } from '../../components/state-label.tsx'
import { EmptyState, QueryResult } from '../../components/view-layout.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useServiceQuery } from '../../data/queries.ts'
import type { QueryData } from '../../data/query-table.ts'
import { useService } from '../../data/service.ts'
import { whileVisible } from '../../data/while-visible.ts'
import { linkTo, replaceRoute, useRoute } from '../../route.ts'
import { DeliverySteps } from '../messages/delivery-steps.tsx'

export function MailTab({ agent }: { agent: string }) {
  const { query } = useRoute()
  const chosen = query.get('message') ?? undefined
  const answer = useServiceQuery('messages', [{ agent, limit: 200 }])
  return (
    <QueryResult answer={answer}>
      {(mail) =>
        mail.length === 0 ? (
          <EmptyState title={`No messages to or from ${agent} yet`} />
        ) : (
          <VirtualList
            items={mail.toReversed()}
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
                    replaceRoute(
                      linkTo('agents', agent, {
                        tab: 'mail',
                        message: chosen === one.id ? undefined : one.id,
                      }),
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
                    {one.id} {formatTime(one.at)}
                  </span>
                </button>
                {chosen === one.id ? (
                  <div className="opened">
                    <pre className="block">{one.content}</pre>
                    <DeliverySteps id={one.id} />
                  </div>
                ) : null}
              </>
            )}
          </VirtualList>
        )
      }
    </QueryResult>
  )
}

/** Text that the agent received and said, oldest first. The program keeps the complete record. */
export function TranscriptTab({ agent }: { agent: string }) {
  const answer = useServiceQuery('transcript', [agent])
  const lines = useMemo(() => transcriptLines(agent, answer.data), [agent, answer.data])
  const service = useService()
  // Text in the middle of a turn writes no event, but it changes the terminal.
  useEffect(
    () =>
      whileVisible(async (signal) => {
        for await (const _ of service.client.terminalEvents(agent, { signal, for: 'notice' }))
          service.refreshQueries('transcript', agent)
      }),
    [agent, service],
  )
  return (
    <QueryResult answer={answer}>
      {() =>
        lines.length === 0 ? (
          <EmptyState title={`Nothing from ${agent} yet`}>
            <p>What {agent} says and receives appears here as it happens.</p>
          </EmptyState>
        ) : (
          <VirtualList
            items={lines}
            size={90}
            label={`Transcript of ${agent}`}
            keyOf={({ id }) => id}
            isAtEnd
          >
            {({ at, who, title, text }) => (
              <div className="said" data-own={who === agent}>
                <p className="label">
                  <b>{who}</b> {formatTime(at)} {title}
                </p>
                <pre>{text}</pre>
              </div>
            )}
          </VirtualList>
        )
      }
    </QueryResult>
  )
}

/** Deliveries that at least reached the input of the program. */
const REACHED: ReadonlySet<string> = new Set(['submitted', 'read'])

function transcriptLines(agent: string, data: QueryData<'transcript'> = { said: [], messages: [] }) {
  const received = data.messages.filter((one) => one.to === agent && REACHED.has(one.delivery))
  return [
    ...data.said.map(({ at, text }) => ({ at, who: agent, title: '', text, id: `said ${at}` })),
    ...received.map(({ at, from, title, content, id }) => ({ at, who: from, title, text: content, id })),
  ].toSorted((one, other) => one.at.localeCompare(other.at))
}

export function TasksTab({ agent }: { agent: string }) {
  const answer = useServiceQuery('tasks', ['all'])
  return (
    <QueryResult answer={answer}>
      {(all) => {
        const mine = all.filter((task) => task.agent === agent || task.delegator === agent).toReversed()
        if (mine.length === 0) return <EmptyState title={`No tasks for ${agent}`} />
        return (
          <VirtualList
            items={mine}
            size={37}
            label={`Tasks of ${agent}, newest first`}
            keyOf={({ id }) => id}
          >
            {(task) => (
              <a className="line" href={linkTo('tasks', task.id)}>
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
          </VirtualList>
        )
      }}
    </QueryResult>
  )
}

export function PromptTab({ agent }: { agent: string }) {
  const answer = useServiceQuery('prompt', [agent])
  return <QueryResult answer={answer}>{(prompt) => <pre className="block prompt">{prompt}</pre>}</QueryResult>
}
