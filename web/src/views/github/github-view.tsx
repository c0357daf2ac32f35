import type { ReactNode } from 'react'
import type { AnswerOf } from '../../../../src/service/contract.ts'
import { textOf, visible } from '../../components/exact-text.ts'
import { clock, counted } from '../../components/format.ts'
import { Icon } from '../../components/icon.tsx'
import { Chip } from '../../components/state-label.tsx'
import { Empty, Head, Shown } from '../../components/view-layout.tsx'
import { Rows } from '../../components/virtual-list.tsx'
import { useAsk, useChanges } from '../../data/service.ts'
import { refine, to, usePlace } from '../../route.ts'

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
const WORDS: Record<string, string> = { asked: 'asks a person', dry: 'dry run', routed: 'given out' }

const where = ({ repository, number }: { repository?: string | undefined; number?: number | undefined }) =>
  `${repository ?? ''}${number === undefined ? '' : `#${number}`}`

export function GithubView() {
  const { id, query } = usePlace()
  const show = query.get('show') === 'events' ? 'events' : 'actions'
  const answer = useAsk('github', (client) => client.github({ limit: 200 }), [
    'github',
    'task',
    'human',
    'config',
    useChanges('github'),
  ])
  return (
    <>
      <Head title="GitHub" note={answer.data?.connected === true ? noteOf(answer.data) : undefined}>
        {answer.data === undefined || isEmpty(answer.data) ? null : (
          <div className="segments">
            <button type="button" aria-pressed={show === 'actions'} onClick={() => refine(to('github'))}>
              Decisions
            </button>
            <button
              type="button"
              aria-pressed={show === 'events'}
              onClick={() => refine(to('github', undefined, { show: 'events' }))}
            >
              Events
            </button>
          </div>
        )}
      </Head>
      <Shown answer={answer}>
        {(log) =>
          isEmpty(log) ? (
            <Nothing isConnected={log.connected} />
          ) : (
            <>
              {log.halted.map(({ agent, failures }) => (
                <p key={agent} className="asking">
                  <Chip word="halted" tone="bad" />
                  <span className="asking-text">
                    {agent} failed {counted(failures, 'time')} in a row and gets nothing more;{' '}
                    <a href={to('agents', agent)}>Resume</a> lets it go on.
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
      </Shown>
    </>
  )
}

const isEmpty = ({ events, actions }: Log) => events.length === 0 && actions.length === 0

function noteOf({ repositories, dry_run, actions }: Log): string {
  const asked = actions.filter(({ state }) => state === 'asked').length
  return [
    repositories.length === 0 ? 'every repository with the secret' : repositories.join(', '),
    ...(dry_run ? ['dry run: nothing is written there'] : []),
    ...(asked === 0 ? [] : [`${counted(asked, 'approval')} pending`]),
  ].join(' · ')
}

function Nothing({ isConnected }: { isConnected: boolean }) {
  return isConnected ? (
    <Empty title="Nothing came from GitHub yet">
      <p>
        <code>orc github setup</code> says whether the webhook and its permissions are right.
      </p>
      <p>Events, what agents decide on them and what waits for you are then here.</p>
    </Empty>
  ) : (
    <Empty title="GitHub is not connected">
      <p>
        Add <code>github:</code> to <code>orc.yaml</code> with your repositories, and tell GitHub the
        webhook's address.
      </p>
      <p>Its events, what agents decided on them and what waits for you are then here.</p>
    </Empty>
  )
}

function Actions({ actions, id }: { actions: readonly Action[]; id: string | undefined }) {
  const chosen = actions.find(({ key }) => key === id)
  // What waits for a person stands first.
  const ordered = actions.toSorted(
    (one, other) => Number(other.state === 'asked') - Number(one.state === 'asked'),
  )
  return (
    <div className="split" data-open={chosen !== undefined}>
      <div>
        {actions.length === 0 ? (
          <Empty title="No agent has proposed anything yet" />
        ) : (
          <Rows
            items={ordered}
            size={37}
            label="Decisions, newest first"
            keyOf={({ key }) => key}
            chosen={id}
          >
            {(action) => (
              <a
                className="line"
                href={to('github', action.key)}
                aria-current={action === chosen ? 'true' : undefined}
              >
                <Chip word={WORDS[action.state] ?? action.state} tone={TONES[action.state]} />
                <span className="line-main">
                  <b>{action.agent}</b> {action.text} <span className="label">{where(action)}</span>
                </span>
                <span className="label">{clock(action.at)}</span>
              </a>
            )}
          </Rows>
        )}
      </div>
      {chosen === undefined ? null : <ActionAside action={chosen} />}
    </div>
  )
}

function ActionAside({ action }: { action: Action }) {
  return (
    <aside className="aside" aria-label={action.text}>
      <div className="aside-head">
        <h2>{action.text}</h2>
        <a className="button" data-kind="quiet" href={to('github')} aria-label="Close">
          <Icon name="close" />
        </a>
      </div>
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
          <a href={to('agents', action.agent)}>{action.agent}</a>, {clock(action.at)}
        </dd>
        {action.confidence === undefined ? null : (
          <>
            <dt>Confidence</dt>
            <dd>{Math.round(action.confidence * 100)} %</dd>
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
            <p className="section">{name}</p>
            <pre className="block">{visible(textOf(value))}</pre>
          </div>
        ))}
      {action.request_id === undefined ? null : (
        <a
          className="button"
          data-kind={action.state === 'asked' ? 'main' : undefined}
          href={to('inbox', action.request_id)}
        >
          {action.state === 'asked' ? 'Decide' : 'What was decided'} ({action.request_id})
        </a>
      )}
    </aside>
  )
}

function Events({ events, id }: { events: readonly Event[]; id: string | undefined }) {
  const chosen = events.find((event) => event.id === id)
  return (
    <div className="split" data-open={chosen !== undefined}>
      <div>
        <Rows items={events} size={37} label="Events, newest first" keyOf={(event) => event.id} chosen={id}>
          {(event) => (
            <a
              className="line"
              href={to('github', event.id, { show: 'events' })}
              aria-current={event === chosen ? 'true' : undefined}
            >
              <Chip word={WORDS[event.state] ?? event.state} tone={TONES[event.state]} />
              <span className="line-main">
                <b>{event.event}</b> {where(event)}{' '}
                <span className="label">{event.note ?? event.work.map(({ agent }) => agent).join(', ')}</span>
              </span>
              <span className="label">{clock(event.at)}</span>
            </a>
          )}
        </Rows>
      </div>
      {chosen === undefined ? null : (
        <aside className="aside" aria-label={chosen.event}>
          <div className="aside-head">
            <h2>
              {chosen.event} {where(chosen)}
            </h2>
            <a
              className="button"
              data-kind="quiet"
              href={to('github', undefined, { show: 'events' })}
              aria-label="Close"
            >
              <Icon name="close" />
            </a>
          </div>
          <p className="label">
            {chosen.id} · {clock(chosen.at)}
          </p>
          {chosen.note === undefined ? null : <p>{chosen.note}</p>}
          <ol className="ladder">
            {chosen.work.map((one) => (
              <li key={one.role}>
                <Chip word={one.state} tone={TONES[one.state]} />
                <span>
                  <a href={to('agents', one.agent)}>{one.agent}</a> as {one.role}{' '}
                  {one.task_id === undefined ? null : <a href={to('tasks', one.task_id)}>{one.task_id}</a>}
                </span>
              </li>
            ))}
          </ol>
        </aside>
      )}
    </div>
  )
}

/** A link out of the page; only to the web, whatever was written down as its address. */
function ExternalLink({ url, children }: { url: string; children: ReactNode }) {
  if (!/^https?:\/\//i.test(url)) return <>{children}</>
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  )
}
