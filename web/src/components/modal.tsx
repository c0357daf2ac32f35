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
  /** The part of it that is read out when it comes up. */
  describedBy?: string
  onClose: () => void
  children: ReactNode
}) {
  const [cameFrom] = useState(() => document.activeElement)
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
            goBackTo(cameFrom)
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

/** Where one was; if that is gone, to the view, so that the next Tab does not begin at the top of the page. */
function goBackTo(place: Element | null) {
  const isThere = place instanceof HTMLElement && place.isConnected && place !== document.body
  const target = isThere ? place : document.getElementById('main')
  target?.focus({ preventScroll: true })
}

/** What the dialog is for, where it says so; else its first control, as usual. */
function focusFirst(event: Event) {
  const first = (event.target as HTMLElement).querySelector<HTMLElement>('[data-first]')
  if (first === null) return
  event.preventDefault()
  first.focus()
}
