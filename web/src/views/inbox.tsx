import { useState } from 'react'
import { Icon } from '../parts/icon.tsx'
import { useKeys } from '../parts/keys.ts'
import { Empty, Head, Shown } from '../parts/panel.tsx'
import { RequestCard } from '../parts/request-card.tsx'
import { Chip } from '../parts/state.tsx'
import { clock, counted } from '../parts/words.ts'
import { useAsk, useRequests } from '../room.ts'
import { refine, to, usePlace } from '../route.ts'

export function InboxView() {
  const { id, query } = usePlace()
  const isPast = query.get('show') === 'past'
  const answer = useRequests()
  const open = answer.data ?? []
  const at = Math.max(
    0,
    open.findIndex((request) => request.id === id),
  )
  const choose = (index: number) => {
    const next = open[Math.max(0, Math.min(open.length - 1, index))]
    if (next !== undefined) refine(to('inbox', next.id))
  }
  useKeys({ j: () => choose(at + 1), k: () => choose(at - 1) })

  return (
    <>
      <Head
        title="Inbox"
        note={open.length === 0 ? undefined : `${counted(open.length, 'question')} for a person`}
      >
        <NotifyButton />
        <div className="segments">
          <button type="button" aria-pressed={!isPast} onClick={() => refine(to('inbox'))}>
            Open
          </button>
          <button
            type="button"
            aria-pressed={isPast}
            onClick={() => refine(to('inbox', undefined, { show: 'past' }))}
          >
            Decided
          </button>
        </div>
      </Head>
      {isPast ? (
        <Past />
      ) : (
        <Shown answer={answer}>
          {(requests) =>
            requests.length === 0 ? (
              <Empty title="Nobody waits for you">
                <p>
                  Questions and approvals of agents appear here, and before you wherever you are in this page.
                </p>
              </Empty>
            ) : (
              <ul className="cards">
                {requests.map((request, index) => (
                  <li key={request.id}>
                    <RequestCard request={request} isChosen={index === at} />
                  </li>
                ))}
              </ul>
            )
          }
        </Shown>
      )}
    </>
  )
}

function Past() {
  const answer = useAsk(
    'requests:all',
    async (client) => (await client.humanRequests({ state: 'all', limit: 200 })).requests.toReversed(),
    ['human'],
  )
  return (
    <Shown answer={answer}>
      {(all) => {
        const past = all.filter(({ state }) => state !== 'open')
        if (past.length === 0) return <Empty title="Nothing was decided yet" />
        return (
          <ul className="list">
            {past.map((request) => (
              <li key={request.id} className="line">
                <Chip
                  word={request.state}
                  tone={request.state === 'rejected' ? 'bad' : request.state === 'expired' ? 'off' : 'done'}
                />
                <span className="line-main">
                  <b>{request.asker}</b> {request.question}
                  {request.comment === undefined ? null : <span className="label"> “{request.comment}”</span>}
                </span>
                <span className="label">
                  {request.decided_by ?? ''}{' '}
                  {request.decided_at === undefined ? '' : clock(request.decided_at)}
                </span>
              </li>
            ))}
          </ul>
        )
      }}
    </Shown>
  )
}

function NotifyButton() {
  const [state, setState] = useState(() => ('Notification' in window ? Notification.permission : 'denied'))
  if (state !== 'default') return null
  return (
    <button
      type="button"
      className="button"
      onClick={() => void Notification.requestPermission().then((next) => setState(next))}
    >
      <Icon name="bell" />
      Notify me
    </button>
  )
}
