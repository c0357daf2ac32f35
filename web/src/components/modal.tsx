import * as Dialog from '@radix-ui/react-dialog'
import { type ReactNode, useState } from 'react'
import { Icon } from './icon.tsx'

export function Modal({
  title,
  describedBy,
  onClose,
  children,
}: {
  title: string
  /** The element that screen readers read out when the dialog opens. */
  describedBy?: string
  onClose: () => void
  children: ReactNode
}) {
  const [previousFocus] = useState(() => document.activeElement)
  return (
    <Dialog.Root open onOpenChange={(isOpen) => isOpen || onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="cover" />
        <Dialog.Content
          className="dialog"
          aria-describedby={describedBy}
          onOpenAutoFocus={focusFirst}
          onCloseAutoFocus={(event) => {
            event.preventDefault()
            restoreFocus(previousFocus)
          }}
        >
          <div className="aside-head">
            <Dialog.Title asChild>
              <h2>{title}</h2>
            </Dialog.Title>
            <Dialog.Close className="button" data-kind="quiet" aria-label="Close">
              <Icon name="close" />
            </Dialog.Close>
          </div>
          {children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

/** Restores the focus. If that element is gone, the view gets it, so that Tab does not start at the top of the page. */
function restoreFocus(place: Element | null) {
  const isThere = place instanceof HTMLElement && place.isConnected && place !== document.body
  const target = isThere ? place : document.getElementById('main')
  target?.focus({ preventScroll: true })
}

/** Focuses the element marked `data-first`, or the first control. */
function focusFirst(event: Event) {
  const first = (event.target as HTMLElement).querySelector<HTMLElement>('[data-first]')
  if (first === null) return
  event.preventDefault()
  first.focus()
}
