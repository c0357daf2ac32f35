import { useEffect, useRef } from 'react'
import { Empty, Shown } from '../parts/panel.tsx'
import { screenTopic, useAsk } from '../room.ts'

const LINES = 3000

/** What went by in the terminal, as text that can be searched and copied; it begins at its end. */
export function History({ agent }: { agent: string }) {
  const place = useRef<HTMLPreElement>(null)
  const answer = useAsk(
    `history:${agent}`,
    async (client) => (await client.terminal(agent, { lines: LINES })).screen,
    // The terminal beside it says when it shows something else.
    ['session', screenTopic(agent)],
    1000,
  )
  const isThere = answer.data !== undefined
  useEffect(() => {
    place.current?.scrollTo({ top: place.current.scrollHeight })
  }, [isThere])
  return (
    <Shown answer={answer}>
      {(screen) =>
        screen.trim() === '' ? (
          <Empty title={`${agent} has shown nothing yet`} />
        ) : (
          <pre
            className="terminal-history"
            ref={place}
            // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the keyboard.
            tabIndex={0}
            aria-label={`The last ${LINES} lines of ${agent}`}
            role="log"
            aria-live="off"
          >
            {screen.trimEnd()}
          </pre>
        )
      }
    </Shown>
  )
}
