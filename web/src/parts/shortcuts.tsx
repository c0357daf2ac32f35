import { Modal } from './modal.tsx'

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
