import { useMemo } from 'react'
import { AgentPicker } from '../../components/agent-picker.tsx'
import { formatTime, pluralize } from '../../components/format.ts'
import { Icon } from '../../components/icon.tsx'
import { Chip } from '../../components/state-label.tsx'
import {
  EmptyState,
  isPhone,
  QueryResult,
  Segments,
  SidePanel,
  ViewHeader,
} from '../../components/view-layout.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { type Mail, useServiceQuery } from '../../data/queries.ts'
import { linkTo, replaceRoute, useRoute } from '../../route.ts'
import { DeliverySteps } from './delivery-steps.tsx'

const SHOWN = 500
/** These write messages too. */
const PEOPLE = ['operator', 'system']
/** More lanes than this do not fit on a screen. */
const MOST_LANES = 10
const TIME_WIDTH = 70
const LANE_WIDTH = 84
/** Horizontal padding on both sides, as in the style sheet. */
const EDGES = 32

export function ConversationsView() {
  const { id, query } = useRoute()
  const agent = query.get('agent') ?? ''
  const other = query.get('with') ?? ''
  const thread = query.get('thread') ?? ''
  const before = query.get('before') ?? ''
  // A sequence needs a lane for each party, so a phone starts with threads.
  const asThread = (query.get('as') ?? (isPhone() ? 'thread' : 'sequence')) === 'thread'
  const filter = {
    limit: SHOWN,
    ...(agent === '' ? {} : { agent }),
    ...(other === '' ? {} : { with: other }),
    ...(thread === '' ? {} : { thread }),
    ...(before === '' ? {} : { before }),
  }
  const answer = useServiceQuery('messages', [filter])
  const link = useMessageLink()
  const set = (more: Record<string, string | undefined>) => replaceRoute(link(id, more))
  const oldest = answer.data?.length === SHOWN ? answer.data[0]!.id : undefined
  return (
    <>
      <ViewHeader
        title="Conversations"
        note={answer.data === undefined ? undefined : countNote(answer.data.length, before)}
      >
        <AgentPicker
          label="Agent"
          placeholder="Everyone"
          className="search"
          also={PEOPLE}
          value={agent}
          onPick={(name) =>
            set({ agent: name || undefined, before: undefined, ...(name === '' ? { with: undefined } : {}) })
          }
        />
        {agent === '' ? null : (
          <AgentPicker
            label="With"
            placeholder="With anyone"
            className="search"
            also={PEOPLE}
            value={other}
            onPick={(name) => set({ with: name || undefined, before: undefined })}
          />
        )}
        {thread === '' ? null : (
          <button
            type="button"
            className="button"
            onClick={() => set({ thread: undefined, before: undefined })}
          >
            Only {thread} <Icon name="close" />
            <span className="sr">: show all threads</span>
          </button>
        )}
        {oldest === undefined ? null : (
          <button type="button" className="button" onClick={() => set({ before: oldest })}>
            Older
          </button>
        )}
        {before === '' ? null : (
          <button type="button" className="button" onClick={() => set({ before: undefined })}>
            Newest
          </button>
        )}
        <Segments
          chosen={asThread ? 'Threads' : 'Sequence'}
          links={{ Sequence: link(id, { as: 'sequence' }), Threads: link(id, { as: 'thread' }) }}
        />
      </ViewHeader>
      <div className="split" data-open={id !== undefined}>
        <div>
          <QueryResult answer={answer}>
            {(mail) =>
              mail.length === 0 ? (
                <EmptyState title="No messages yet">
                  <p>Messages between agents, and between you and them, appear here.</p>
                </EmptyState>
              ) : asThread ? (
                <Threads mail={mail} />
              ) : (
                <Sequence mail={mail} />
              )
            }
          </QueryResult>
        </div>
        {id === undefined ? null : <MessagePanel key={id} id={id} />}
      </div>
    </>
  )
}

function countNote(count: number, before: string): string {
  const what = before === '' ? '' : ` before ${before}`
  return count === SHOWN ? `the newest ${SHOWN} messages${what}` : `${pluralize(count, 'message')}${what}`
}

function useMessageLink() {
  const { query } = useRoute()
  return (id: string | undefined, more: Record<string, string | undefined> = {}) =>
    linkTo('conversations', id, { ...Object.fromEntries(query), ...more })
}

/** A sequence diagram: one lane per party, newest message first. */
function Sequence({ mail }: { mail: readonly Mail[] }) {
  const link = useMessageLink()
  const { id: chosen } = useRoute()
  const lanes = useMemo(() => lanesOf(mail), [mail])
  const newest = useMemo(() => mail.toReversed(), [mail])
  const at = (name: string) => lanes.indexOf(name)
  const columns = {
    gridTemplateColumns: `${TIME_WIDTH}px repeat(${lanes.length}, minmax(${LANE_WIDTH}px, 1fr))`,
  }
  return (
    <div className="sequence">
      <div className="sequence-all" style={{ minWidth: EDGES + TIME_WIDTH + lanes.length * LANE_WIDTH }}>
        <div className="lanes" style={columns}>
          <span className="label">newest first</span>
          {lanes.map((name) => (
            <span key={name} title={name}>
              {name}
            </span>
          ))}
        </div>
        <VirtualList
          items={newest}
          size={40}
          label="Messages, newest first"
          keyOf={({ id }) => id}
          chosen={chosen}
        >
          {(one) => {
            const [from, until] = [at(one.from), at(one.to)]
            const isKnown = from >= 0 && until >= 0
            const [left, right] = from <= until ? [from, until] : [until, from]
            return (
              <a
                className="arrow-row"
                style={columns}
                href={link(one.id)}
                aria-current={one.id === chosen ? 'true' : undefined}
              >
                <span className="sr">
                  {one.from} to {one.to}, {one.delivery}
                </span>
                <span className="label" style={{ gridColumn: 1 }}>
                  {formatTime(one.at)}
                </span>
                {lanes.map((name, index) => (
                  <i key={name} className="lane" style={{ gridColumn: index + 2 }} aria-hidden="true" />
                ))}
                {isKnown ? (
                  <span
                    className="arrow"
                    data-tone={TONES[one.delivery]}
                    data-to={from <= until ? 'right' : 'left'}
                    data-self={from === until}
                    style={{
                      gridColumn: `${left + 2} / ${right + 3}`,
                      marginInline: `calc(50% / ${right - left + 1})`,
                    }}
                  >
                    <span>{one.title}</span>
                  </span>
                ) : (
                  <span className="arrow-text" style={{ gridColumn: `2 / -1` }}>
                    {one.from} → {one.to}: {one.title}
                  </span>
                )}
              </a>
            )
          }}
        </VirtualList>
      </div>
    </div>
  )
}

const TONES: Record<string, string> = { queued: 'held', read: 'done', uncertain: 'asks', failed: 'bad' }

/** The parties with the most messages, in the order in which they first appear. */
function lanesOf(mail: readonly Mail[]): string[] {
  const spoke = new Map<string, number>()
  for (const { from, to: recipient } of mail) {
    spoke.set(from, (spoke.get(from) ?? 0) + 1)
    spoke.set(recipient, (spoke.get(recipient) ?? 0) + 1)
  }
  const most = new Set(
    [...spoke]
      .toSorted(([, one], [, other]) => other - one)
      .slice(0, MOST_LANES)
      .map(([name]) => name),
  )
  return [...spoke.keys()].filter((name) => most.has(name))
}

function Threads({ mail }: { mail: readonly Mail[] }) {
  const link = useMessageLink()
  const { id: chosen } = useRoute()
  const lines = useMemo(() => {
    const threads = new Map<string, Mail[]>()
    for (const one of mail) threads.set(one.correlation_id, [...(threads.get(one.correlation_id) ?? []), one])
    return [...threads.values()]
      .toReversed()
      .flatMap((thread) => thread.map((one, index) => ({ one, isFirst: index === 0 })))
  }, [mail])
  return (
    <VirtualList items={lines} size={40} label="Threads" keyOf={({ one }) => one.id} chosen={chosen}>
      {({ one, isFirst }) => (
        <a
          className="line thread"
          data-first={isFirst}
          href={link(one.id)}
          aria-current={one.id === chosen ? 'true' : undefined}
        >
          <Chip word={one.delivery} />
          <span className="line-main">
            <b>
              {one.from} → {one.to}
            </b>{' '}
            {one.title} <span className="label">{one.content.slice(0, 160)}</span>
          </span>
          <span className="label">{formatTime(one.at)}</span>
        </a>
      )}
    </VirtualList>
  )
}

function MessagePanel({ id }: { id: string }) {
  const link = useMessageLink()
  const answer = useServiceQuery('message', [id])
  return (
    <SidePanel label={id} title={answer.data?.title ?? id} closeLink={link(undefined)}>
      <QueryResult answer={answer}>
        {(mail) => (
          <>
            <p>
              <a href={linkTo('agents', mail.from)}>{mail.from}</a> →{' '}
              <a href={linkTo('agents', mail.to)}>{mail.to}</a>{' '}
              <span className="label">
                {mail.id} · {formatTime(mail.at)} · {mail.priority}
              </span>
            </p>
            <p className="label">
              <a href={link(id, { thread: mail.correlation_id, before: undefined })}>Whole thread</a>
              {' · '}
              <a href={link(id, { agent: mail.from, with: mail.to, thread: undefined, before: undefined })}>
                All messages between {mail.from} and {mail.to}
              </a>
            </p>
            <pre className="block">{mail.content}</pre>
            {mail.in_reply_to === undefined ? null : (
              <p className="label">
                in reply to <a href={link(mail.in_reply_to)}>{mail.in_reply_to}</a>
              </p>
            )}
            {mail.task_id === undefined ? null : <a href={linkTo('tasks', mail.task_id)}>{mail.task_id}</a>}
            <DeliverySteps id={id} />
          </>
        )}
      </QueryResult>
    </SidePanel>
  )
}
