import { useEffect, useRef, useState } from 'react'
import { Modal } from '../../components/modal.tsx'
import { useServiceQuery } from '../../data/queries.ts'
import { linkTo, navigate } from '../../route.ts'
import { questionId, RequestCard } from './request-card.tsx'

/** How often to check whether the person has closed a dialog or stopped typing. */
const CHECK_MS = 300

/**
 * Opens a dialog for each new request, in every view (S2.16). It waits while another dialog is open or the person is
 * typing. Closing the dialog decides nothing: the request stays in the inbox.
 */
export function NewRequestDialog({ isInbox }: { isInbox: boolean }) {
  const { data } = useServiceQuery('openRequests', [])
  const known = useRef<Set<string>>(undefined)
  const [shown, setShown] = useState<string>()
  const [queue, setQueue] = useState<readonly string[]>([])
  /** For screen readers, where no dialog opens. */
  const [news, setNews] = useState('')

  useEffect(() => {
    if (data === undefined) return
    const isFirst = known.current === undefined
    const fresh = data.filter(({ id }) => known.current?.has(id) !== true)
    known.current = new Set(data.map(({ id }) => id))
    if (isFirst) return
    for (const { id, asker, question } of fresh) notify(id, asker, question)
    const last = fresh.at(-1)
    if (last !== undefined) setNews(`${last.asker} asks: ${last.question.slice(0, 200)}`)
    const isOpen = (id: string) => data.some((one) => one.id === id)
    setQueue((now) => [...now.filter(isOpen), ...fresh.map(({ id }) => id)])
  }, [data])

  // The inbox already shows them.
  useEffect(() => {
    if (!isInbox) return
    setQueue([])
    setShown(undefined)
  }, [isInbox, data])

  const isShown = data?.some(({ id }) => id === shown) === true
  useEffect(() => {
    const [next, ...others] = queue
    if (next === undefined || isShown || isInbox) return
    const look = () => {
      if (document.querySelector('[role=dialog]') !== null || isWriting()) return false
      setShown(next)
      setQueue(others)
      return true
    }
    if (look()) return
    const timer = setInterval(() => look() && clearInterval(timer), CHECK_MS)
    return () => clearInterval(timer)
  }, [queue, isShown, isInbox])

  const request = data?.find(({ id }) => id === shown)
  if (request === undefined || isInbox) {
    return (
      <p className="sr" role="status">
        {news}
      </p>
    )
  }
  return (
    <Modal
      title={`${request.asker} asks`}
      describedBy={questionId(request)}
      onClose={() => setShown(undefined)}
    >
      <RequestCard key={request.id} request={request} isModal isSudden onDone={() => setShown(undefined)} />
      <div className="dialog-foot">
        {queue.length === 0 ? null : <span className="label">{queue.length} more waiting</span>}
        <button
          type="button"
          className="button"
          data-kind="quiet"
          onClick={() => {
            setShown(undefined)
            navigate(linkTo('inbox', request.id))
          }}
        >
          Not now
        </button>
      </div>
    </Modal>
  )
}

function isWriting(): boolean {
  return document.activeElement?.closest('input, textarea, [data-takes-keys]') != null
}

function notify(id: string, asker: string, question: string) {
  if (!document.hidden || !('Notification' in window) || Notification.permission !== 'granted') return
  try {
    const note = new Notification(`${asker} asks`, { body: question.slice(0, 200), tag: id })
    note.onclick = () => {
      focus()
      navigate(linkTo('inbox', id))
      note.close()
    }
  } catch {
    // Chromium on Android has the constructor but throws; the title and the badge still show the request.
  }
}
