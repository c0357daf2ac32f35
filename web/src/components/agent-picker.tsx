import { useEffect, useId, useRef, useState } from 'react'
import { useTeam } from '../data/queries.ts'

/** A team may have a thousand agents. */
const MAX_SUGGESTIONS = 40

/** An input for the name of an agent, with suggestions. */
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
  /** Called with a complete name or an empty string, not with partial input. */
  onPick: (name: string) => void
  label: string
  also?: readonly string[]
  placeholder?: string
  className?: string
  isRequired?: boolean
  /** Gets the focus when its dialog opens. */
  isFirst?: boolean
}) {
  const names = [...also, ...(useTeam().data?.agents ?? []).map(({ name }) => name)]
  const list = useId()
  const [draft, setDraft] = useState({ text: value, of: value })
  const text = draft.of === value ? draft.text : value
  const wanted = text.toLowerCase()
  const known = (typed: string) => names.find((name) => name.toLowerCase() === typed.toLowerCase())
  const isKnown = text === '' || known(text) !== undefined
  const field = useRef<HTMLInputElement>(null)
  // An unknown name is not picked, so the form must not be submitted with it.
  useEffect(() => {
    field.current?.setCustomValidity(isKnown ? '' : `There is no agent named ${text}`)
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
          .slice(0, MAX_SUGGESTIONS)
          .map((name) => (
            <option key={name} value={name} />
          ))}
      </datalist>
    </>
  )
}
