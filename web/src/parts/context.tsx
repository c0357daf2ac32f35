import type { Agent } from '../room.ts'

/** How full an agent's context is, by its program's own record. */
export function Context({ context }: { context: Agent['context'] }) {
  if (context?.percent === undefined) return null
  const percent = Math.min(100, Math.round(context.percent))
  return (
    <span className="context" data-level={context.level} title={context.model}>
      <span className="context-bar" aria-hidden="true">
        <i style={{ width: `${percent}%` }} />
      </span>
      {percent}%<span className="sr"> of the context used</span>
    </span>
  )
}
