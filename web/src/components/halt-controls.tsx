import { useState } from 'react'
import { useRoom, useTeam } from '../data/service.ts'
import { useNow } from '../data/service-clock.ts'
import { since } from './format.ts'
import { Icon } from './icon.tsx'
import { Modal } from './modal.tsx'
import { useAct } from './notifications.tsx'

/** Always in reach. It asks once, for a reason that everyone is told; Enter is enough. */
export function StopButton() {
  const room = useRoom()
  const [isOpen, setOpen] = useState(false)
  const [reason, setReason] = useState('')
  const [act, isBusy] = useAct()
  const isHalted = useTeam().data?.halt !== undefined
  if (isHalted) return <GoButton />

  async function stop() {
    await act(async () => {
      const { interrupts } = await room.client.halt(reason.trim() === '' ? {} : { reason: reason.trim() })
      // Whatever else it says: everything stands, and this must not come up again when it goes on.
      setOpen(false)
      setReason('')
      room.touch('halt')
      const still = interrupts.filter(({ stopped }) => !stopped).map(({ agent }) => agent)
      if (still.length > 0)
        throw new Error(`Everything is stopped, but these did not stop their turn: ${still.join(', ')}`)
      return 'Everything is stopped.'
    })
  }

  return (
    <>
      <button type="button" className="button" data-kind="danger" onClick={() => setOpen(true)}>
        <Icon name="stop" />
        Stop all
      </button>
      {isOpen ? (
        <Modal title="Stop everything?" onClose={() => setOpen(false)}>
          <p>Busy agents are interrupted. Nothing is delivered, started or timed until you let it go on.</p>
          <form
            onSubmit={(event) => {
              event.preventDefault()
              void stop()
            }}
          >
            <label className="field">
              <span>Why (optional; everyone can read it)</span>
              <input
                value={reason}
                onChange={(event) => setReason(event.target.value)}
                maxLength={500}
                data-first
              />
            </label>
            <div className="dialog-foot" style={{ marginTop: 12 }}>
              <button type="button" className="button" onClick={() => setOpen(false)}>
                Not now
              </button>
              <button type="submit" className="button" data-kind="danger" disabled={isBusy}>
                <Icon name="stop" />
                Stop all
              </button>
            </div>
          </form>
        </Modal>
      ) : null}
    </>
  )
}

function GoButton() {
  const room = useRoom()
  const [act, isBusy] = useAct()
  return (
    <button
      type="button"
      className="button"
      data-kind="main"
      disabled={isBusy}
      onClick={() =>
        void act(async () => {
          await room.client.go()
          room.touch('halt')
          return 'Everything goes on.'
        })
      }
    >
      <Icon name="go" />
      Go on
    </button>
  )
}

export function HaltBanner() {
  const halt = useTeam().data?.halt
  const now = useNow()
  if (halt === undefined) return null
  return (
    <div className="halted">
      <strong role="alert">Everything is stopped</strong>
      <span>
        by {halt.by}, {since(halt.at, now)} ago{halt.reason === undefined ? '' : `: ${halt.reason}`}
      </span>
    </div>
  )
}
