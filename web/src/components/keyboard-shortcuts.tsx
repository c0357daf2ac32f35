import { useEffect, useRef } from 'react'
import { Modal } from './modal.tsx'

type Keys = Readonly<Record<string, (() => void) | undefined>>

/**
 * Handles single keys (`c`) and sequences (`g t`). Ignores keys while the person types, keys held down, and keys below a
 * dialog. `isInDialog`: the shortcuts belong to the open dialog.
 */
export function useShortcuts(keys: Keys, isInDialog = false) {
  const latest = useRef(keys)
  latest.current = keys
  const ownDialogs = useRef(0)
  ownDialogs.current = isInDialog ? 1 : 0
  useEffect(() => {
    let before = ''
    let beforeAt = 0
    const listen = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || event.repeat) return
      if (isTyping(event.target)) return
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

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.closest('input, textarea, select, [data-takes-keys]') !== null)
  )
}

type Views = readonly { readonly title: string; readonly key: string }[]

const MORE: readonly (readonly [string, string])[] = [
  ['c', 'Write a message'],
  ['j k', 'Next or previous request in the inbox'],
  ['a', 'Approve'],
  ['x', 'Reject'],
  ['m', 'Edit, then approve'],
  ['1 … 9', 'Choose an answer'],
  ['F6', 'Leave a terminal you have taken over'],
  ['Esc', 'Close a dialog or a side panel'],
]

export function ShortcutsDialog({ views, onClose }: { views: Views; onClose: () => void }) {
  return (
    <Modal title="Keyboard shortcuts" onClose={onClose}>
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
