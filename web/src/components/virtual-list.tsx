import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, type UIEvent, useEffect, useRef } from 'react'

/** Closer to the end than this many pixels counts as the end. */
const END_TOLERANCE = 40

/** A long list that renders only its visible rows. */
export function VirtualList<T>({
  items,
  size,
  label,
  keyOf,
  isAtEnd = false,
  chosen,
  children,
}: {
  items: readonly T[]
  size: number
  label: string
  keyOf: (item: T) => string | number
  /** Starts scrolled to the end and follows new items, until somebody scrolls away. */
  isAtEnd?: boolean
  /** The item to scroll to when the list first appears. */
  chosen?: string | number | undefined
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
  const stays = useRef(isAtEnd)
  const last = items.length - 1
  const end = rows.getTotalSize()
  useEffect(() => {
    if (stays.current && last >= 0) rows.scrollToIndex(last, { align: 'end' })
  }, [last, end])
  const isSought = useRef(chosen !== undefined)
  useEffect(() => {
    const index = isSought.current ? items.findIndex((item) => keyOf(item) === chosen) : -1
    if (index < 0) return
    isSought.current = false
    rows.scrollToIndex(index, { align: 'center' })
  }, [items, chosen])
  const watch = ({ currentTarget: { scrollTop, clientHeight, scrollHeight } }: UIEvent<HTMLElement>) => {
    stays.current = isAtEnd && scrollTop + clientHeight >= scrollHeight - END_TOLERANCE
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users have to be able to scroll it.
    <section className="rows" ref={scroller} onScroll={watch} tabIndex={0} aria-label={label}>
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
