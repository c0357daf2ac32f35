import { useState } from 'react'
import { formatAge } from '../../components/format.ts'
import { Icon } from '../../components/icon.tsx'
import { Modal } from '../../components/modal.tsx'
import { useAction } from '../../components/notifications.tsx'
import { useTeam } from '../../data/queries.ts'
import { useService } from '../../data/service.ts'
import { useNow } from '../../data/service-clock.ts'

/** Available in every view. It asks once, for an optional reason; Enter is enough. */
export function StopButton() {
  const service = useService()
  const [isOpen, setOpen] = useState(false)
  const [reason, setReason] = useState('')
  const [act, isBusy] = useAction()
  const isHalted = useTeam().data?.halt !== undefined
  if (isHalted) return <ResumeButton />

  async function stop() {
    await act(async () => {
      const { interrupts } = await service.client.halt(reason.trim() === '' ? {} : { reason: reason.trim() })
      // Everything is halted now, so close the dialog even if some agents did not stop.
      setOpen(false)
      setReason('')
      service.refreshTopics('halt')
      const still = interrupts.filter(({ stopped }) => !stopped).map(({ agent }) => agent)
      if (still.length > 0)
        throw new Error(`Everything is halted, but these agents did not stop their turn: ${still.join(', ')}`)
      return 'Everything is halted.'
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
          <p>
            This interrupts busy agents. Until you resume, nothing is delivered or started, and all timeouts
            pause.
          </p>
          <form
            onSubmit={(event) => {
              event.preventDefault()
              void stop()
            }}
          >
            <label className="field">
              <span>Reason (optional, visible to everyone)</span>
              <input
                value={reason}
                onChange={(event) => setReason(event.target.value)}
                maxLength={500}
                data-first
              />
            </label>
            <div className="dialog-foot" style={{ marginTop: 12 }}>
              <button type="button" className="button" onClick={() => setOpen(false)}>
                Cancel
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

function ResumeButton() {
  const service = useService()
  const [act, isBusy] = useAction()
  return (
    <button
      type="button"
      className="button"
      data-kind="main"
      disabled={isBusy}
      onClick={() =>
        void act(async () => {
          await service.client.go()
          service.refreshTopics('halt')
          return 'Everything resumed.'
        })
      }
    >
      <Icon name="go" />
      Resume all
    </button>
  )
}

export function HaltBanner() {
  const halt = useTeam().data?.halt
  const now = useNow()
  if (halt === undefined) return null
  return (
    <div className="halted">
      <strong role="alert">Everything is halted</strong>
      <span>
        by {halt.by}, {formatAge(halt.at, now)}
        {halt.reason === undefined ? '' : `: ${halt.reason}`}
      </span>
    </div>
  )
}
