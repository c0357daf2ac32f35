import { useState } from 'react'
import { AgentPicker } from '../../components/agent-picker.tsx'
import { Modal } from '../../components/modal.tsx'
import { requireSuccess, useAction } from '../../components/notifications.tsx'
import { useService } from '../../data/service.ts'

const EVERYONE = ['*']
const PRIORITIES = ['low', 'normal', 'high', 'urgent'] as const

export function ComposeDialog({ to, onClose }: { to: string; onClose: () => void }) {
  const service = useService()
  const [draft, setDraft] = useState({ to, title: '', content: '', priority: 'normal' })
  const [act, isBusy] = useAction()
  const set = (name: keyof typeof draft) => (event: { target: { value: string } }) =>
    setDraft((now) => ({ ...now, [name]: event.target.value }))

  async function send() {
    const isSent = await act(async () => {
      const { title, ...rest } = draft
      const receipt = await service.client.command({
        type: 'send_message',
        ...rest,
        ...(title.trim() === '' ? {} : { title }),
      })
      requireSuccess(receipt)
      return receipt.status === 'delivered'
        ? `Message ${receipt.message_id} queued for ${draft.to}.`
        : 'Message sent.'
    })
    if (isSent) onClose()
  }

  return (
    <Modal title="Write a message" onClose={onClose}>
      <form
        className="form"
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
      >
        <div className="form-pair">
          <div className="field">
            <span aria-hidden="true">To</span>
            <AgentPicker
              label="To"
              also={EVERYONE}
              value={draft.to}
              placeholder="An agent, or * for everyone"
              isRequired
              isFirst
              onPick={(name) => set('to')({ target: { value: name } })}
            />
          </div>
          <label className="field">
            <span>Priority</span>
            <select value={draft.priority} onChange={set('priority')}>
              {PRIORITIES.map((one) => (
                <option key={one} value={one}>
                  {one === 'urgent' ? 'urgent (interrupts the agent)' : one}
                </option>
              ))}
            </select>
          </label>
        </div>
        <label className="field">
          <span>Title (optional)</span>
          <input value={draft.title} onChange={set('title')} maxLength={2000} />
        </label>
        <label className="field">
          <span>Message</span>
          <textarea value={draft.content} onChange={set('content')} rows={6} required />
        </label>
        <div className="dialog-foot">
          <button type="submit" className="button" data-kind="main" disabled={isBusy}>
            Send
          </button>
        </div>
      </form>
    </Modal>
  )
}
