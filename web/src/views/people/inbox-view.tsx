import { useEffect, useRef, useState } from 'react'
import { formatTime, pluralize } from '../../components/format.ts'
import { Icon } from '../../components/icon.tsx'
import { useShortcuts } from '../../components/keyboard-shortcuts.tsx'
import { Chip } from '../../components/state-label.tsx'
import { EmptyState, QueryResult, Segments, ViewHeader } from '../../components/view-layout.tsx'
import { VirtualList } from '../../components/virtual-list.tsx'
import { useServiceQuery } from '../../data/queries.ts'
import { linkTo, replaceRoute, useRoute } from '../../route.ts'
import { RequestCard } from './request-card.tsx'

/** More cards at once slow the page down. */
const MAX_CARDS = 30

export function InboxView() {
  const { id, query } = useRoute()
  const isPast = query.get('show') === 'past'
  const answer = useServiceQuery('openRequests', [])
  const listed = answer.data ?? []
  const isListed = id === undefined || answer.data === undefined || listed.some((one) => one.id === id)
  // Decided already, or newer than the list.
  const missing = isListed ? '' : id
  const named = useServiceQuery('humanRequest', [missing], { isEnabled: missing !== '' })
  // Keep one card, so that a comment being typed survives when the list also loads the request.
  const open = named.data?.state === 'open' && !isPast ? [named.data, ...listed] : listed
  // No id selects the first request. An id that is gone selects none, so that no key hits another request.
  const at = id === undefined ? 0 : open.findIndex((request) => request.id === id)
  const lastAt = useRef(0)
  useEffect(() => {
    if (at >= 0) lastAt.current = at
  }, [at])
  const [byKey, setByKey] = useState<string>()
  const around = at < 0 ? lastAt.current : at
  const first = Math.max(0, Math.min(around - MAX_CARDS / 2, open.length - MAX_CARDS))
  const choose = (index: number) => {
    const next = open[Math.max(0, Math.min(open.length - 1, index))]
    if (next === undefined) return
    setByKey(next.id)
    replaceRoute(linkTo('inbox', next.id))
  }
  useShortcuts({
    j: () => choose(at < 0 ? around : at + 1),
    k: () => choose(around - 1),
  })

  return (
    <>
      <ViewHeader
        title="Inbox"
        note={isPast || open.length === 0 ? undefined : pluralize(open.length, 'open request')}
      >
        <NotifyButton />
        <Segments
          chosen={isPast ? 'Decided' : 'Open'}
          links={{ Open: linkTo('inbox'), Decided: linkTo('inbox', undefined, { show: 'past' }) }}
        />
      </ViewHeader>
      {isListed ? null : (
        <QueryResult answer={named}>
          {(request) =>
            open.includes(request) ? null : (
              <div className="cards">
                <RequestCard key={request.id} request={request} />
              </div>
            )
          }
        </QueryResult>
      )}
      {isPast ? (
        <Past chosen={id} />
      ) : (
        <QueryResult answer={answer}>
          {() =>
            open.length === 0 ? (
              <EmptyState title="Nothing needs your attention">
                <p>
                  Questions and approval requests from agents appear here, and pop up in every other view.
                </p>
              </EmptyState>
            ) : (
              <ul className="cards">
                {open.slice(first, first + MAX_CARDS).map((request, index) => (
                  <li key={request.id}>
                    <RequestCard
                      request={request}
                      isChosen={first + index === at}
                      isSudden={first + index === at && request.id !== byKey}
                    />
                  </li>
                ))}
                {open.length > MAX_CARDS ? (
                  <li className="label">
                    {first + 1} to {Math.min(open.length, first + MAX_CARDS)} of {open.length}; use j and k to
                    reach the others.
                  </li>
                ) : null}
              </ul>
            )
          }
        </QueryResult>
      )}
    </>
  )
}

function Past({ chosen }: { chosen: string | undefined }) {
  const answer = useServiceQuery('decidedRequests', [])
  return (
    <QueryResult answer={answer}>
      {(past) => {
        if (past.length === 0) return <EmptyState title="No decisions yet" />
        return (
          <VirtualList items={past} size={37} label="Decided, newest first" keyOf={({ id }) => id}>
            {(request) => (
              <a
                className="line"
                href={linkTo('inbox', request.id, { show: 'past' })}
                aria-current={request.id === chosen ? 'true' : undefined}
              >
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
                  {request.decided_at === undefined ? '' : formatTime(request.decided_at)}
                </span>
              </a>
            )}
          </VirtualList>
        )
      }}
    </QueryResult>
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
