import * as Dialog from '@radix-ui/react-dialog'
import type { ReactNode } from 'react'
import { Icon } from './icon.tsx'

export function Modal({
  title,
  onClose,
  children,
}: {
  title: string
  onClose: () => void
  children: ReactNode
}) {
  return (
    <Dialog.Root open onOpenChange={(isOpen) => isOpen || onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="cover" />
        <Dialog.Content className="dialog" aria-describedby={undefined} onOpenAutoFocus={focusFirst}>
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

/** What the dialog is for, where it says so; else its first control, as usual. */
function focusFirst(event: Event) {
  const first = (event.target as HTMLElement).querySelector<HTMLElement>('[data-first]')
  if (first === null) return
  event.preventDefault()
  first.focus()
}
