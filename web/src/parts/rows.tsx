import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useRef } from 'react'

/** A long list of which only what is seen is in the page. */
export function Rows<T>({
  items,
  size,
  label,
  keyOf,
  children,
}: {
  items: readonly T[]
  size: number
  label: string
  keyOf: (item: T) => string | number
  children: (item: T, index: number) => ReactNode
}) {
  const scroller = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => size,
    getItemKey: (index) => keyOf(items[index]!),
    overscan: 8,
  })
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the keyboard.
    <section className="rows" ref={scroller} tabIndex={0} aria-label={label}>
      <div className="rows-all" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((row) => (
          <div
            key={row.key}
            data-index={row.index}
            ref={rows.measureElement}
            className="rows-one"
            style={{ transform: `translateY(${row.start}px)` }}
          >
            {children(items[row.index]!, row.index)}
          </div>
        ))}
      </div>
    </section>
  )
}
