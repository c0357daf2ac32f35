import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, type UIEvent, useEffect, useRef } from 'react'

const NEAR = 40

/** A long list of which only what is seen is in the page. */
export function Rows<T>({
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
  /** It begins at its end, and stays there while it grows, unless somebody scrolls away. */
  isAtEnd?: boolean
  /** The one that an address names: it is in sight when the list first is. */
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
    stays.current = isAtEnd && scrollTop + clientHeight >= scrollHeight - NEAR
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the keyboard.
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
