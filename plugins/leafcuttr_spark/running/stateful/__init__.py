"""Operations with state."""
