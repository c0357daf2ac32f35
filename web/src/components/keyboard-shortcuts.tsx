import { useEffect, useRef } from 'react'
import { Modal } from './modal.tsx'

type Keys = Readonly<Record<string, (() => void) | undefined>>

/**
 * One letter, or two after each other (`g t`); never while somebody writes, never by a key that is held down, and not
 * below a dialog: whoever looks at that means something else. `isInDialog`: these are the dialog's own.
 */
export function useKeys(keys: Keys, isInDialog = false) {
  const latest = useRef(keys)
  latest.current = keys
  const ownDialogs = useRef(0)
  ownDialogs.current = isInDialog ? 1 : 0
  useEffect(() => {
    let before = ''
    let beforeAt = 0
    const listen = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.repeat) return
      if (isWriting(event.target)) return
      if (document.querySelectorAll('[role=dialog]').length > ownDialogs.current) return
      const both = event.timeStamp - beforeAt < 1000 ? `${before} ${event.key}` : ''
      const action =
        latest.current[both] ?? (before === 'g' && both !== '' ? undefined : latest.current[event.key])
      before = event.key
      beforeAt = event.timeStamp
      if (action === undefined) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [])
}

function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.closest('input, textarea, select, [data-takes-keys]') !== null)
  )
}

type Views = readonly { readonly title: string; readonly key: string }[]

const MORE: readonly (readonly [string, string])[] = [
  ['c', 'write a message'],
  ['j k', 'next, previous in the inbox'],
  ['a', 'approve'],
  ['x', 'reject'],
  ['m', 'change, then approve'],
  ['1 … 9', 'choose an answer'],
  ['F6', 'leave a terminal that you took over'],
  ['Esc', 'close a dialog, or what is beside a list'],
]

export function Shortcuts({ views, onClose }: { views: Views; onClose: () => void }) {
  return (
    <Modal title="Keyboard" onClose={onClose}>
      <dl className="shortcuts">
        {views.map(({ title, key }) => (
          <Line key={key} keys={`g ${key}`} text={title} />
        ))}
        {MORE.map(([keys, text]) => (
          <Line key={keys} keys={keys} text={text} />
        ))}
      </dl>
    </Modal>
  )
}

function Line({ keys, text }: { keys: string; text: string }) {
  return (
    <>
      <dt>
        <kbd>{keys}</kbd>
      </dt>
      <dd>{text}</dd>
    </>
  )
}
