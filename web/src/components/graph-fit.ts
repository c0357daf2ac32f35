import type { FitViewOptions, ReactFlowInstance } from '@xyflow/react'
import { useEffect, useRef } from 'react'

/** A drawing fits its place: also when that gets another size, or the drawing another shape, until somebody moves it. */
export function useFit(options: FitViewOptions, shape: string) {
  const drawing = useRef<Pick<ReactFlowInstance, 'fitView'>>(undefined)
  const isMoved = useRef(false)
  const ref = useRef<HTMLDivElement>(null)
  const fit = () => {
    if (!isMoved.current) void drawing.current?.fitView(options)
  }
  useEffect(() => {
    const sizes = new ResizeObserver(fit)
    sizes.observe(ref.current!)
    return () => sizes.disconnect()
  }, [])
  useEffect(() => {
    const next = requestAnimationFrame(fit)
    return () => cancelAnimationFrame(next)
  }, [shape])
  return {
    ref,
    onInit(instance: Pick<ReactFlowInstance, 'fitView'>) {
      drawing.current = instance
    },
    onMove(event: unknown) {
      // Without an event it was moved by this, or by its own buttons.
      if (event !== null) isMoved.current = true
    },
  }
}
