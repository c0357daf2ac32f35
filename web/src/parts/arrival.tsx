import { useEffect, useRef, useState } from 'react'
import { useRequests } from '../room.ts'
import { go, to } from '../route.ts'
import { Modal } from './modal.tsx'
import { RequestCard } from './request-card.tsx'

/**
 * A question that arrives is put before the person at once, wherever they are (S2.16); not over another dialog, and not
 * while they write. Closing it decides nothing: it stays in the inbox.
 */
export function Arrival() {
  const { data } = useRequests()
  const known = useRef<Set<string>>(undefined)
  const [shown, setShown] = useState<string>()

  useEffect(() => {
    if (data === undefined) return
    const isFirst = known.current === undefined
    const fresh = data.filter(({ id }) => known.current?.has(id) !== true)
    known.current = new Set(data.map(({ id }) => id))
    if (isFirst) return
    for (const { asker, question } of fresh) notify(asker, question)
    const next = fresh[0]
    if (next !== undefined && document.querySelector('[role=dialog]') === null && !isWriting())
      setShown(next.id)
  }, [data])

  const request = data?.find(({ id }) => id === shown)
  if (request === undefined) return null
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

function notify(asker: string, question: string) {
  if (!document.hidden || !('Notification' in window) || Notification.permission !== 'granted') return
  const note = new Notification(`${asker} asks`, { body: question.slice(0, 200), tag: 'orchub' })
  note.onclick = () => {
    focus()
    go(to('inbox'))
    note.close()
  }
}
