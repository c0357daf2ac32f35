import { useEffect, useRef, useState } from 'react'
import { clock, counted } from '../../components/format.ts'
import { Icon } from '../../components/icon.tsx'
import { useKeys } from '../../components/keyboard-shortcuts.tsx'
import { RequestCard } from '../../components/request-card.tsx'
import { Chip } from '../../components/state-label.tsx'
import { Empty, Head, Shown } from '../../components/view-layout.tsx'
import { Rows } from '../../components/virtual-list.tsx'
import { type Answer, type Request, useAsk, useRequests } from '../../data/service.ts'
import { refine, to, usePlace } from '../../route.ts'

/** With all that each says, and its buttons: more at once is no help. */
const MOST_CARDS = 30

export function InboxView() {
  const { id, query } = usePlace()
  const isPast = query.get('show') === 'past'
  const answer = useRequests()
  const listed = answer.data ?? []
  const isListed = id === undefined || answer.data === undefined || listed.some((one) => one.id === id)
  const named = useNamed(isListed ? undefined : id)
  // One card from the beginning: what somebody began to write in it is still there when the list has it too.
  const open = named.data?.state === 'open' && !isPast ? [named.data, ...listed] : listed
  // Without an address it is the first one. An address whose request is gone chooses none: no key may meet another.
  const at = id === undefined ? 0 : open.findIndex((request) => request.id === id)
  const lastAt = useRef(0)
  useEffect(() => {
    if (at >= 0) lastAt.current = at
  }, [at])
  const [byKey, setByKey] = useState<string>()
  const around = at < 0 ? lastAt.current : at
  const first = Math.max(0, Math.min(around - MOST_CARDS / 2, open.length - MOST_CARDS))
  const choose = (index: number) => {
    const next = open[Math.max(0, Math.min(open.length - 1, index))]
    if (next === undefined) return
    setByKey(next.id)
    refine(to('inbox', next.id))
  }
  useKeys({
    j: () => choose(at < 0 ? around : at + 1),
    k: () => choose(around - 1),
  })

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
      {isListed ? null : (
        <Shown answer={named}>
          {(request) =>
            request === undefined || open.includes(request) ? null : (
              <div className="cards">
                <RequestCard key={request.id} request={request} />
              </div>
            )
          }
        </Shown>
      )}
      {isPast ? (
        <Past />
      ) : (
        <Shown answer={answer}>
          {() =>
            open.length === 0 ? (
              <Empty title="Nobody waits for you">
                <p>
                  Questions and approvals of agents appear here, and before you wherever you are in this page.
                </p>
              </Empty>
            ) : (
              <ul className="cards">
                {open.slice(first, first + MOST_CARDS).map((request, index) => (
                  <li key={request.id}>
                    <RequestCard
                      request={request}
                      isChosen={first + index === at}
                      isSudden={first + index === at && request.id !== byKey}
                    />
                  </li>
                ))}
                {open.length > MOST_CARDS ? (
                  <li className="label">
                    {first + 1} to {Math.min(open.length, first + MOST_CARDS)} of {open.length}; j and k go on
                    to the others.
                  </li>
                ) : null}
              </ul>
            )
          }
        </Shown>
      )}
    </>
  )
}

/** One that is not in the list, for whoever has its address: no longer open, or newer than the list. */
function useNamed(id: string | undefined): Answer<Request | undefined> {
  return useAsk(
    `request:${id ?? ''}`,
    async (client) => (id === undefined ? undefined : await client.humanRequest(id)),
    ['human'],
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
          <Rows items={past} size={37} label="Decided, newest first" keyOf={({ id }) => id}>
            {(request) => (
              <a className="line" href={to('inbox', request.id, { show: 'past' })}>
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
              </a>
            )}
          </Rows>
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
