import { useEffect, useId, useRef, useState } from 'react'
import { useTeam } from '../data/service.ts'

/** A team may have a thousand names; a person types the beginning of one. */
const MOST_PROPOSED = 40

/** A field that takes the name of an agent, and proposes those that fit what was typed. */
export function AgentPicker({
  value,
  onPick,
  label,
  also = [],
  placeholder,
  className,
  isRequired = false,
  isFirst = false,
}: {
  value: string
  /** Told of each name of the team, and of nothing at all; not of the letters on the way there. */
  onPick: (name: string) => void
  label: string
  also?: readonly string[]
  placeholder?: string
  className?: string
  isRequired?: boolean
  /** Where whoever opens its dialog begins. */
  isFirst?: boolean
}) {
  const names = [...also, ...(useTeam().data?.agents ?? []).map(({ name }) => name)]
  const list = useId()
  const [draft, setDraft] = useState({ text: value, of: value })
  const text = draft.of === value ? draft.text : value
  const wanted = text.toLowerCase()
  const known = (said: string) => names.find((name) => name.toLowerCase() === said.toLowerCase())
  const isKnown = text === '' || known(text) !== undefined
  const field = useRef<HTMLInputElement>(null)
  // What is shown is not what was picked: no form may go out with it.
  useEffect(() => {
    field.current?.setCustomValidity(isKnown ? '' : `Nobody here is called ${text}`)
  }, [isKnown, text])
  return (
    <>
      <input
        ref={field}
        aria-label={label}
        aria-invalid={isKnown ? undefined : true}
        className={className}
        placeholder={placeholder}
        list={list}
        required={isRequired}
        data-first={isFirst || undefined}
        autoComplete="off"
        value={text}
        onChange={({ target }) => {
          const name = target.value === '' ? '' : known(target.value)
          setDraft({ text: target.value, of: name ?? value })
          if (name !== undefined && name !== value) onPick(name)
        }}
      />
      <datalist id={list}>
        {names
          .filter((name) => name.toLowerCase().includes(wanted))
          .slice(0, MOST_PROPOSED)
          .map((name) => (
            <option key={name} value={name} />
          ))}
      </datalist>
    </>
  )
}
