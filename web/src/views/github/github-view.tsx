import type { ReactNode } from 'react'
import type { AnswerOf } from '../../../../src/api/contract.ts'
import { showInvisible, textOf } from '../../components/exact-text.ts'
import { formatTime, pluralize } from '../../components/format.ts'
import { Chip } from '../../components/state-label.tsx'
import { EmptyState, QueryResult, Segments, SidePanel, ViewHeader } from '../../components/view-layout.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useChanges, useServiceQuery } from '../../data/queries.ts'
import { linkTo, useRoute } from '../../route.ts'

type Log = AnswerOf<'github'>
type Action = Log['actions'][number]
type Event = Log['events'][number]

const TONES: Record<string, string> = {
  asked: 'asks',
  waiting: 'held',
  ready: 'busy',
  acting: 'busy',
  delegated: 'busy',
  done: 'done',
  routed: 'done',
  dry: 'off',
  stale: 'off',
  ignored: 'off',
  skipped: 'off',
  refused: 'bad',
  failed: 'bad',
}
const WORDS: Record<string, string> = { asked: 'needs approval', dry: 'dry run', routed: 'assigned' }

const where = ({ repository, number }: { repository?: string | undefined; number?: number | undefined }) =>
  `${repository ?? ''}${number === undefined ? '' : `#${number}`}`

export function GithubView() {
  const { id, query } = useRoute()
  const show = query.get('show') === 'events' ? 'events' : 'actions'
  const answer = useServiceQuery('github', [])
  useChanges('github')
  return (
    <>
      <ViewHeader title="GitHub" note={answer.data?.connected === true ? noteOf(answer.data) : undefined}>
        {answer.data === undefined || isEmpty(answer.data) ? null : (
          <Segments
            chosen={show === 'events' ? 'Events' : 'Decisions'}
            links={{ Decisions: linkTo('github'), Events: linkTo('github', undefined, { show: 'events' }) }}
          />
        )}
      </ViewHeader>
      <QueryResult answer={answer}>
        {(log) =>
          isEmpty(log) ? (
            <NoEvents isConnected={log.connected} />
          ) : (
            <>
              {log.suspended.map(({ agent, failures }) => (
                <p key={agent} className="asking">
                  <Chip word="suspended" tone="bad" />
                  <span className="asking-text">
                    {agent} failed {pluralize(failures, 'time')} in a row and gets no more work;{' '}
                    <a href={linkTo('agents', agent)}>resume it</a> to continue.
                  </span>
                </p>
              ))}
              {show === 'events' ? (
                <Events events={log.events} id={id} />
              ) : (
                <Actions actions={log.actions} id={id} />
              )}
            </>
          )
        }
      </QueryResult>
    </>
  )
}

const isEmpty = ({ events, actions }: Log) => events.length === 0 && actions.length === 0

function noteOf({ repositories, dry_run, actions }: Log): string {
  const asked = actions.filter(({ state }) => state === 'asked').length
  return [
    repositories.length === 0 ? 'any repository with the webhook secret' : repositories.join(', '),
    ...(dry_run ? ['dry run: nothing is written to GitHub'] : []),
    ...(asked === 0 ? [] : [`${pluralize(asked, 'approval')} pending`]),
  ].join(' · ')
}

function NoEvents({ isConnected }: { isConnected: boolean }) {
  return isConnected ? (
    <EmptyState title="No events from GitHub yet">
      <p>
        <code>orc github setup</code> checks the webhook and its permissions.
      </p>
      <p>Events, the decisions of agents and pending approvals appear here.</p>
    </EmptyState>
  ) : (
    <EmptyState title="GitHub is not connected">
      <p>
        Add <code>github:</code> with your repositories to <code>orc.yaml</code>, and add the webhook to
        GitHub.
      </p>
      <p>Events, the decisions of agents and pending approvals then appear here.</p>
    </EmptyState>
  )
}

function Actions({ actions, id }: { actions: readonly Action[]; id: string | undefined }) {
  const chosen = actions.find(({ key }) => key === id)
  // Pending approvals first.
  const ordered = actions.toSorted(
    (one, other) => Number(other.state === 'asked') - Number(one.state === 'asked'),
  )
  return (
    <div className="split" data-open={chosen !== undefined}>
      <div>
        {actions.length === 0 ? (
          <EmptyState title="No proposals yet" />
        ) : (
          <VirtualList
            items={ordered}
            size={37}
            label="Decisions, newest first"
            keyOf={({ key }) => key}
            chosen={id}
          >
            {(action) => (
              <a
                className="line"
                href={linkTo('github', action.key)}
                aria-current={action === chosen ? 'true' : undefined}
              >
                <Chip word={WORDS[action.state] ?? action.state} tone={TONES[action.state]} />
                <span className="line-main">
                  <b>{action.agent}</b> {action.text} <span className="label">{where(action)}</span>
                </span>
                <span className="label">{formatTime(action.at)}</span>
              </a>
            )}
          </VirtualList>
        )}
      </div>
      {chosen === undefined ? null : <ActionPanel action={chosen} />}
    </div>
  )
}

function ActionPanel({ action }: { action: Action }) {
  return (
    <SidePanel label={action.text} closeLink={linkTo('github')}>
      <dl className="pairs">
        <dt>State</dt>
        <dd>
          <Chip word={WORDS[action.state] ?? action.state} tone={TONES[action.state]} /> {action.note ?? ''}
        </dd>
        <dt>Where</dt>
        <dd>
          {action.url === undefined ? (
            where(action)
          ) : (
            <ExternalLink url={action.url}>{where(action)}</ExternalLink>
          )}
        </dd>
        <dt>By</dt>
        <dd>
          <a href={linkTo('agents', action.agent)}>{action.agent}</a>, {formatTime(action.at)}
        </dd>
        {action.confidence === undefined ? null : (
          <>
            <dt>Confidence</dt>
            <dd>{Math.round(action.confidence * 100)}%</dd>
          </>
        )}
        {action.rationale === undefined ? null : (
          <>
            <dt>Why</dt>
            <dd>{action.rationale}</dd>
          </>
        )}
      </dl>
      {Object.entries(action.fields)
        .filter(([name]) => name !== 'number')
        .map(([name, value]) => (
          <div key={name}>
            <p className="section">{name.replaceAll('_', ' ')}</p>
            <pre className="block">{showInvisible(textOf(value))}</pre>
          </div>
        ))}
      {action.request_id === undefined ? null : (
        <a
          className="button"
          data-kind={action.state === 'asked' ? 'main' : undefined}
          href={linkTo('inbox', action.request_id)}
        >
          {action.state === 'asked' ? 'Decide' : 'Show decision'} ({action.request_id})
        </a>
      )}
    </SidePanel>
  )
}

function Events({ events, id }: { events: readonly Event[]; id: string | undefined }) {
  const chosen = events.find((event) => event.id === id)
  return (
    <div className="split" data-open={chosen !== undefined}>
      <div>
        <VirtualList
          items={events}
          size={37}
          label="Events, newest first"
          keyOf={(event) => event.id}
          chosen={id}
        >
          {(event) => (
            <a
              className="line"
              href={linkTo('github', event.id, { show: 'events' })}
              aria-current={event === chosen ? 'true' : undefined}
            >
              <Chip word={WORDS[event.state] ?? event.state} tone={TONES[event.state]} />
              <span className="line-main">
                <b>{event.event}</b> {where(event)}{' '}
                <span className="label">{event.note ?? event.work.map(({ agent }) => agent).join(', ')}</span>
              </span>
              <span className="label">{formatTime(event.at)}</span>
            </a>
          )}
        </VirtualList>
      </div>
      {chosen === undefined ? null : (
        <SidePanel
          label={chosen.event}
          title={`${chosen.event} ${where(chosen)}`}
          closeLink={linkTo('github', undefined, { show: 'events' })}
        >
          <p className="label">
            {chosen.id} · {formatTime(chosen.at)}
          </p>
          {chosen.note === undefined ? null : <p>{chosen.note}</p>}
          <ol className="steps">
            {chosen.work.map((one) => (
              <li key={one.role}>
                <Chip word={one.state} tone={TONES[one.state]} />
                <span>
                  <a href={linkTo('agents', one.agent)}>{one.agent}</a> as {one.role}{' '}
                  {one.task_id === undefined ? null : (
                    <a href={linkTo('tasks', one.task_id)}>{one.task_id}</a>
                  )}
                </span>
              </li>
            ))}
          </ol>
        </SidePanel>
      )}
    </div>
  )
}

/** A link to another site. Any scheme but http and https is shown as text. */
function ExternalLink({ url, children }: { url: string; children: ReactNode }) {
  if (!/^https?:\/\//i.test(url)) return <>{children}</>
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  )
}
