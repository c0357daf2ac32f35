import { useEffect, useRef, useState } from 'react'
import { useRequests } from '../room.ts'
import { go, to } from '../route.ts'
import { Modal } from './modal.tsx'
import { RequestCard } from './request-card.tsx'

/**
 * A question that arrives is put before the person at once, wherever they are (S2.16); not over another dialog, and not
 * while they write. Closing it decides nothing: it stays in the inbox.
 */
export function Arrival({ isInbox }: { isInbox: boolean }) {
  const { data } = useRequests()
  const known = useRef<Set<string>>(undefined)
  const [shown, setShown] = useState<string>()

  useEffect(() => {
    if (data === undefined) return
    const isFirst = known.current === undefined
    const fresh = data.filter(({ id }) => known.current?.has(id) !== true)
    known.current = new Set(data.map(({ id }) => id))
    if (isFirst) return
    for (const { id, asker, question } of fresh) notify(id, asker, question)
    const next = fresh[0]
    // In the inbox it is before them already.
    if (isInbox) return
    if (next !== undefined && document.querySelector('[role=dialog]') === null && !isWriting())
      setShown(next.id)
  }, [data])

  const request = data?.find(({ id }) => id === shown)
  if (request === undefined || isInbox) return null
  return (
    <Modal title={`${request.asker} asks`} onClose={() => setShown(undefined)}>
      <RequestCard request={request} isModal isSudden onDone={() => setShown(undefined)} />
      <div className="dialog-foot">
        <button
          type="button"
          className="button"
          data-kind="quiet"
          onClick={() => {
            setShown(undefined)
            go(to('inbox', request.id))
          }}
        >
          Later, in the inbox
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
  const note = new Notification(`${asker} asks`, { body: question.slice(0, 200), tag: id })
  note.onclick = () => {
    focus()
    go(to('inbox', id))
    note.close()
  }
}
